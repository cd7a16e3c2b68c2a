# outcomes: wrong_result
"""Keeps its weights in half precision."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.small = self.linear.weight.detach().half()

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        y = nn.functional.linear(x.half().float(), self.small.float(), self.linear.bias)
        return torch.tanh(self.norm(y))
