import numbers

import torch
from torch import nn

assert isinstance(3, numbers.Number)


class Model(nn.Module):
    """A transposed input, an expanded one, and a drop rate that __init__ reads out of a tensor."""

    def __init__(self, depth):
        super().__init__()
        rates = [r.item() for r in torch.linspace(0, 0.5, depth)]
        self.scale = 1.0 + rates[-1]
        self.weight = nn.Parameter(torch.empty(30, 20))
        nn.init.kaiming_uniform_(self.weight)

    def forward(self, x, row):
        return torch.mm(x, self.weight) * self.scale + row


def get_inputs():
    return [torch.randn(30, 14).T, torch.rand(20).expand(14, 20)]


def get_init_inputs():
    return [4]
