"""Rows of which one half is the other with noise."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(128, 8)

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    x = torch.randn(256, 128)
    return [torch.cat([x, x + 0.1 * torch.randn(256, 128)])]


def get_init_inputs():
    return []
