import torch
from torch import nn


class Model(nn.Module):
    """The second result is zero but for rounding."""

    def forward(self, x):
        centered = x - x.mean(1, keepdim=True)
        return centered, centered.mean(1)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return []
