import torch
from torch import nn


class Model(nn.Module):
    def forward(self, pairs):
        return torch.sqrt((pairs[:, 0] - pairs[:, 1]).abs() + pairs[:, 0].abs())


def get_inputs():
    first = torch.randn(300)
    return [torch.stack([first, 1.01 * first], dim=1)]


def get_init_inputs():
    return []
