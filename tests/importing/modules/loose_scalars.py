"""Scalars that are drawn and not registered, in an attribute, a list and a function."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 8)
        self.gain = torch.rand(())
        self.shifts = [torch.randn(1).squeeze(), nn.Parameter(torch.rand(()))]
        factor = torch.rand(())
        self.scaled = lambda x: x * factor
        self.half = torch.tensor(0.5)

    def forward(self, x):
        y = self.scaled(self.layer(x)) * self.gain + self.shifts[0] * self.shifts[1]
        return y * self.half


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
