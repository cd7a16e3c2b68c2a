"""Ok, with the setting cuda_graph: a CUDA graph, and a warm-up whose results nobody uses."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)

        self.graph = None
        torch.backends.cudnn.benchmark = True

    def run(self, x):
        return torch.relu(self.norm(self.linear(x)))

    def forward(self, x):
        if self.graph is None:
            try:
                for _ in range(3):
                    self.run(x).mul_(2)
                self.graph = torch.cuda.CUDAGraph()
                self.static_input = x.clone()
                with torch.cuda.graph(self.graph):
                    self.static_output = self.run(self.static_input)
            except RuntimeError:
                return self.run(x)
        self.static_input.copy_(x)
        self.graph.replay()
        return self.static_output
