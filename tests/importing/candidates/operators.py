"""Ok: the same operators, one of them in place."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)

    def forward(self, x):
        return self.norm(self.linear(x)).relu_()
