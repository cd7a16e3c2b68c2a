"""Two streams that are joined."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.side = torch.cuda.Stream()

    def forward(self, x):
        current = torch.cuda.current_stream()
        self.side.wait_stream(current)
        half = len(x) // 2
        with torch.cuda.stream(self.side):
            first = torch.tanh(self.norm(self.linear(x[:half])))
        second = torch.tanh(self.norm(self.linear(x[half:])))
        current.wait_stream(self.side)
        return torch.cat([first, second])
