import torch
from torch import nn


class Model(nn.Module):
    """The largest values of every row, their positions, and the number of rows."""

    def __init__(self, k: int):
        super().__init__()
        self.k = k

    def forward(self, x):
        values, places = torch.topk(x, self.k, dim=1)
        return values, {"places": places, "mean": x.mean(dim=1)}, x.shape[0]


def get_inputs():
    return [torch.rand(64, 50) * 4 - 2]


def get_init_inputs():
    return [5]
