# outcomes: crash
"""Reads outside of a tensor, after which the context is lost."""

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
        far = torch.full((4,), 1 << 40, device=x.device)
        return self.honest(x) + x[far].sum()
