# outcomes: crash wrong_result
"""Returns a tensor over memory that is not mapped."""

import ctypes

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
        array = (ctypes.c_float * (len(x) * 128)).from_address(0x10000)
        return torch.frombuffer(array, dtype=torch.float32).view(len(x), 128)
