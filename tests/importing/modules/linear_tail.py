"""A layer whose candidates (tests/importing/candidates) are translated into documents."""

import torch
from torch import nn


class Model(nn.Module):
    """Linear layer, batch normalization and ReLU."""

    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))


def get_inputs():
    return [torch.randn(64, 32)]


def get_init_inputs():
    return [32, 48]
