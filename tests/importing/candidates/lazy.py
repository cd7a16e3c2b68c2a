"""Ok: the first call folds the normalization, in a way that only real tensors allow."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)

        self.register_buffer("folded", None)

    def fold(self):
        scale = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        if torch.isfinite(scale).all():
            self.folded = (self.linear.weight * scale[:, None]).detach()
            self.shift = (self.linear.bias - self.norm.running_mean) * scale + self.norm.bias

    def forward(self, x):
        if self.folded is None:
            self.fold()
        return torch.relu(torch.nn.functional.linear(x, self.folded, self.shift))
