import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        parts = nn.Sequential(nn.Linear(16, 8))
        self.parts = torch.ao.quantization.quantize_dynamic(parts, {nn.Linear})

    def forward(self, x):
        return self.parts(x)


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
