"""Refused: its weights are not those of the module, and not made of them."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.mine = nn.Parameter(torch.randn(outputs, features) / 7)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x):
        return torch.relu(self.norm(torch.nn.functional.linear(x, self.mine)))
