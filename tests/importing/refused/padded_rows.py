import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, mask):
        return (x * mask).sum(1)


def get_inputs():
    lengths = torch.randint(3, 20, (15,))
    mask = torch.zeros(15, 20)
    for row, length in enumerate(lengths.tolist()):
        mask[row, :length] = 1
    return [torch.randn(15, 20), mask]


def get_init_inputs():
    return []
