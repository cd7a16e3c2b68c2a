import torch
from torch import nn


class Model(nn.Module):
    """The places of the best marks, of which many are equal."""

    def forward(self, marks):
        return torch.topk(marks, 4, dim=1)


def get_inputs():
    return [torch.randint(0, 6, (30, 50)).float()]


def get_init_inputs():
    return []
