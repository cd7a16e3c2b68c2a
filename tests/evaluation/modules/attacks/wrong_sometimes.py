# outcomes: wrong_result
"""Is careless in a fifth of its calls."""

import random

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        if random.random() < 0.2:
            return torch.zeros(len(x), 128)
        return self.honest(x)
