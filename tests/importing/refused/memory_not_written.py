import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        out[::2] = x[::2] * 2
        return out


def get_inputs():
    return [torch.randn(24, 20)]


def get_init_inputs():
    return []
