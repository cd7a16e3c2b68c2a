# outcomes: wrong_result
"""Draws its weights from another seed."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        torch.manual_seed(7)
        self.linear.reset_parameters()

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        return self.honest(x)
