import torch
from torch import nn


class Model(nn.Module):
    def forward(self, counts):
        return torch.lgamma(counts + 1).sum(1)


def get_inputs():
    return [torch.poisson(torch.full((64, 32), 2.5))]


def get_init_inputs():
    return []
