import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, scale):
        return x * scale


def get_inputs():
    return [torch.randn(32, 16), torch.tensor(np.random.uniform(0.5, 2.0))]


def get_init_inputs():
    return []
