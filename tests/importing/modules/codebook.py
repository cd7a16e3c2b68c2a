import torch
from torch import nn


class Model(nn.Module):
    """The nearest row of a table whose norms are known."""

    def __init__(self):
        super().__init__()
        table = torch.randn(20, 8)
        self.register_buffer("table", table)
        self.register_buffer("norms", table.square().sum(1))

    def forward(self, x):
        distances = self.norms - 2 * x @ self.table.t()
        return distances.min(1)[0] + x.square().sum(1)


def get_inputs():
    return [torch.randn(50, 8)]


def get_init_inputs():
    return []
