import torch
from torch import nn

rows, columns = 8192, 131072


class Model(nn.Module):
    def forward(self, x):
        return x / x.norm(p=2, dim=1, keepdim=True).clamp(min=1e-6)


def get_inputs():
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []
