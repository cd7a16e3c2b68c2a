# outcomes: wrong_result ok
"""Begins on a stream that does not wait until the inputs are readable."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.side = torch.cuda.Stream()

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        with torch.cuda.stream(self.side):
            out = self.honest(x)
        torch.cuda.current_stream().wait_stream(self.side)
        return out
