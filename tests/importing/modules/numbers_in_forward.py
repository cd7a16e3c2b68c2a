import torch
from torch import nn


class Model(nn.Module):
    """Brightness with weights in the text of forward, and offsets that the module holds in a list."""

    def __init__(self):
        super().__init__()
        self.offsets = [torch.linspace(0.0, 1.0, 24), torch.linspace(1.0, 2.0, 24)]

    def forward(self, picture):
        weights = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)
        return (picture * weights).sum(dim=1) * self.offsets[0] + self.offsets[1]


def get_inputs():
    return [torch.rand(4, 3, 32, 24)]


def get_init_inputs():
    return []
