"""Weights that NumPy draws, and their largest numbers."""

import numpy
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        weight = numpy.random.randn(16, 8).astype(numpy.float32)
        self.weight = nn.Parameter(torch.from_numpy(weight))
        self.register_buffer("scale", torch.from_numpy(numpy.abs(weight).max(0)))

    def forward(self, x):
        return x @ self.weight / self.scale


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
