import torch
from torch import nn


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right


class Model(nn.Module):
    def forward(self, pair):
        return pair.left + pair.right


def get_inputs():
    return [Pair(torch.randn(32, 16), torch.randn(32, 16))]


def get_init_inputs():
    return []
