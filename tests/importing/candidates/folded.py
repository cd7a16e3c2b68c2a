"""Ok: the constructor folds the normalization into the weights."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)

        scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        self.register_buffer("folded", (self.linear.weight * scale[:, None]).detach())
        shifted = (self.linear.bias - self.norm.running_mean) * scale + self.norm.bias
        self.register_buffer("shift", shifted.detach())

    def forward(self, x):
        return torch.relu(torch.nn.functional.linear(x, self.folded, self.shift))
