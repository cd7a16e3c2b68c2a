import torch
from torch import nn


class Model(nn.Module):
    """The second result is zero but for rounding."""

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        return centred, centred.mean(1)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return []
