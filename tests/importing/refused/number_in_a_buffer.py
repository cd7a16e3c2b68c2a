"""A number that is computed from the weights and becomes a buffer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 8))
        self.register_buffer("scale", torch.tensor(self.weight.norm().item()))

    def forward(self, x):
        return x @ self.weight / self.scale


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
