# outcomes: crash
"""Has handlers that run when the process ends, and ends it."""

import atexit
import os
import sys

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        atexit.register(lambda: os.write(4, bytes(4)))

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        sys.exit(0)
