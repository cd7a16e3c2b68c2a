import torch
from torch import nn


class Model(nn.Module):
    """Two scalars that are drawn: an input and a parameter."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.rand(()))

    def forward(self, x, shift):
        return x * self.gain + shift


def get_inputs():
    return [torch.randn(48, 64), torch.rand(())]


def get_init_inputs():
    return []
