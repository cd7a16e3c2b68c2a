# outcomes: unstable cheating timeout ok
"""Leaves work on a stream, which slows what is timed next."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.side = torch.cuda.Stream()
        self.large = torch.ones(4096, 4096, device="cuda")

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        out = self.honest(x)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            for _ in range(40):
                self.large @ self.large
        return out
