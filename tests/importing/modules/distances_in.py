import torch
from torch import nn


class Model(nn.Module):
    """Distances are never negative."""

    def forward(self, distances):
        return torch.log1p(distances).sqrt()


def get_inputs():
    return [torch.randn(80, 40, 3).norm(dim=-1)]


def get_init_inputs():
    return []
