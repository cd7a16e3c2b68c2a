import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return x.sum(1) / (x != 0).sum(1).clamp(min=1)


def get_inputs():
    return [nn.functional.dropout(torch.randn(32, 64), 0.6)]


def get_init_inputs():
    return []
