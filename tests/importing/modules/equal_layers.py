"""Layers that are made from one seed or copied, and copies of a layer in a list."""

import copy

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Linear(16, 8)
        torch.manual_seed(0)
        self.second = nn.Linear(16, 8)
        self.online = nn.Linear(8, 8)
        self.target = copy.deepcopy(self.online)
        self.target.requires_grad_(False)
        self.layers = nn.ModuleList(copy.deepcopy(nn.Linear(8, 8)) for _ in range(2))
        self.layers[1].load_state_dict(self.layers[0].state_dict())

    def forward(self, x):
        y = self.first(x) - self.second(x.flip(0))
        for layer in self.layers:
            y = torch.tanh(layer(y))
        return self.online(y) - self.target(y.flip(1))


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
