"""Ok: it draws its weights otherwise, but has the names and shapes of the module's."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)

        nn.init.xavier_normal_(self.linear.weight)

    def forward(self, x):
        return torch.relu(self.norm(self.linear(x)))
