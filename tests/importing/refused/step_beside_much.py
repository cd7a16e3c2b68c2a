import random

import torch


class Model(torch.nn.Module):
    """A step, the same for all rows, and an input that is too large to be compared as a whole."""

    def forward(self, x, step):
        return x * torch.cos(step[:, None] / 100.0)


def get_inputs():
    return [torch.randn(64, 80000), torch.full((64,), random.randint(0, 999))]


def get_init_inputs():
    return []
