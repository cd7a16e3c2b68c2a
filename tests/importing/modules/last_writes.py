import torch
from torch import nn


class Model(nn.Module):
    """Several rows are written to one place."""

    def forward(self, x, places):
        result = torch.zeros_like(x)
        result[places] = x
        return result


def get_inputs():
    return [torch.randn(96, 32), torch.randint(0, 20, (96,))]


def get_init_inputs():
    return []
