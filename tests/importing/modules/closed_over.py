"""Parts that a function holds by name, a state that is a plain attribute, and an operator that
PyTorch lacks for bfloat16 on a CPU."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.parts = nn.ModuleDict({"up": nn.Linear(channels, width), "act": nn.Tanh()})
        self.state = torch.randn(1, width)
        self.pool = nn.AvgPool3d(2)
        parts = self.parts
        self.grow = lambda x: parts.act(parts.up(x) + self.state)

    def forward(self, x):
        return self.grow(self.pool(x).mean(dim=(2, 3, 4)))


def get_inputs():
    return [torch.randn(4, 6, 8, 8, 8)]


def get_init_inputs():
    return [6, 10]
