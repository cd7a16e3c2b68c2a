import torch
from torch import nn


class Model(nn.Module):
    """An adapter whose last layer begins with zeros, so that nothing of its input is left."""

    def __init__(self, width, rank):
        super().__init__()
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.up(self.down(x))


def get_inputs():
    return [torch.randn(20, 32)]


def get_init_inputs():
    return [32, 3]
