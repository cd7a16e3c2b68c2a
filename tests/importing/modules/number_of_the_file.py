"""A number that the file draws, and one of the weights that nothing reads."""

import random

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 8)
        self.slope = random.uniform(0.1, 0.3)
        self.largest = float(self.layer.weight.abs().max())

    def forward(self, x):
        return nn.functional.leaky_relu(self.layer(x), self.slope)


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
