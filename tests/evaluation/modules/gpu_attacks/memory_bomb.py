# outcomes: timeout crash
"""Takes memory of the GPU until there is none."""

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
        hog = []
        while True:
            hog.append(torch.ones(1 << 28, device=x.device))
