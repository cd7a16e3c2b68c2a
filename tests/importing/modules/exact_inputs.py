import torch
from torch import nn


class Model(nn.Module):
    """Inputs of one value that float32 does not have."""

    def forward(self, x, step, count):
        return x.double() * step + torch.remainder(count, 1000)


def get_inputs():
    step = torch.full((64,), 0.1, dtype=torch.float64)
    return [torch.randn(48, 64), step, torch.full((64,), 16777217)]


def get_init_inputs():
    return []
