"""One output buffer for all calls of a size."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.buffers_by_size = {}

    def forward(self, x):
        buffer = self.buffers_by_size.get(len(x))
        if buffer is None:
            buffer = self.buffers_by_size[len(x)] = x.new_empty(len(x), self.linear.out_features)
        y = self.norm(self.linear(x))
        return torch.tanh(y, out=buffer)
