import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = nn.ParameterList(
            [nn.Parameter(torch.full((16,), float(i + 1))) for i in range(3)]
        )

    def forward(self, parts, scale, times, negate):
        total = torch.zeros_like(parts[0])
        for part, weight in zip(parts, self.weights):
            total = total + part * weight
        for _ in range(times):
            total = torch.sin(total) * scale
        return -total if negate else total


def get_inputs():
    return [[torch.randn(24, 16), torch.randn(24, 16), torch.ones(24, 16)], 0.5, 2, True]


def get_init_inputs():
    return []
