"""Inputs that NumPy and random draw with seeds of the file's."""

import random

import numpy
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, values, rows, others):
        return values[rows] + values[others]


def get_inputs():
    numpy.random.seed(11)
    random.seed(12)
    generator = numpy.random.default_rng(13)
    return [
        torch.from_numpy(numpy.random.rand(50, 16).astype(numpy.float32)),
        torch.from_numpy(generator.integers(0, 50, 200)),
        torch.tensor([random.randrange(50) for _ in range(200)]),
    ]


def get_init_inputs():
    return []
