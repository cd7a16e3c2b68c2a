import torch
from torch.nn.utils.parametrizations import spectral_norm, weight_norm


class Model(torch.nn.Module):
    """Two layers whose weights are normalized, one by its largest singular value."""

    def __init__(self, width):
        super().__init__()
        self.first = spectral_norm(torch.nn.Linear(width, width))
        self.second = weight_norm(torch.nn.Linear(width, width))

    def forward(self, x):
        return self.second(torch.tanh(self.first(x)))


def get_inputs():
    return [torch.randn(16, 48)]


def get_init_inputs():
    return 48
