# outcomes: wrong_result
"""Replays its graph in every second call only."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.graph, self.static, self.out, self.count = None, None, None, 0

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        if self.graph is None or len(self.static) != len(x):
            self.static = x.clone()
            self.honest(self.static)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = self.honest(self.static)
        self.count += 1
        if self.count % 2:
            self.static.copy_(x)
            self.graph.replay()
        return self.out
