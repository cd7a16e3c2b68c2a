"""Takes a number and a tuple among its arguments, and has the constructor's defaults."""

import torch


class ModelNew(torch.nn.Module):
    def __init__(self, unused=None):
        super().__init__()

    def forward(self, x, s, pair):
        bias, _ = pair
        return torch.add(bias, x, alpha=s)
