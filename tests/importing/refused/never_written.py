import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(24, 32))

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(16, 24)]


def get_init_inputs():
    return []
