import random

import torch


class Model(torch.nn.Module):
    def __init__(self, slope):
        super().__init__()
        self.slope = slope

    def forward(self, x):
        return torch.nn.functional.leaky_relu(x, self.slope)


def get_inputs():
    return [torch.randn(16, 24)]


def get_init_inputs():
    return [random.random()]
