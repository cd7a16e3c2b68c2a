"""A module that is traced in its constructor, and prints."""

import torch
import torch.nn as nn


class Inner(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)

    def forward(self, x):
        return torch.tanh(self.norm(self.linear(x)))


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        inner = Inner(wide, narrow).eval()
        self.traced = torch.jit.freeze(torch.jit.trace(inner, torch.zeros(3, wide)))
        print("traced")

    def forward(self, x):
        print("a call", x.shape)
        return self.traced(x)
