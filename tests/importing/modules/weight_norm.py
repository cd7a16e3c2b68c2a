"""A convolution whose weights have a separate norm."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


class Model(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = weight_norm(nn.Conv1d(channels, channels, 3, padding=1))

    def forward(self, x):
        return torch.relu(self.conv(x))


def get_inputs():
    return [torch.randn(8, 16, 64)]


def get_init_inputs():
    return [16]
