import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    """Tensors that are drawn into memory that held a constant."""

    def __init__(self):
        super().__init__()
        weight = torch.zeros(24, 16)
        weight.copy_(torch.randn(24, 16))
        self.weight = nn.Parameter(weight)

    def forward(self, x, kept, signs):
        return torch.where(kept == 0, signs, x @ self.weight.t())


def get_inputs():
    x = torch.zeros(40, 16)
    x[:] = torch.rand(40, 16)
    kept = torch.from_numpy((np.random.rand(40, 24) < 0.7).astype(np.float32))
    signs = torch.from_numpy(np.random.choice([-1.0, 1.0], size=(40, 24))).float()
    return [x, kept, signs]


def get_init_inputs():
    return []
