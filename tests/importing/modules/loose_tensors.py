import torch
from torch import nn

STEPS = torch.linspace(0.0, 1.0, 40)


class Model(nn.Module):
    """Tensors that are neither parameters nor buffers, of the file and of the module."""

    def __init__(self, width):
        super().__init__()
        self.waves = torch.sin(
            torch.arange(40).unsqueeze(1) / (10.0 ** (torch.arange(width) / width))
        )
        self.gain = torch.tensor(0.25)

    def forward(self, x):
        return x * self.gain + self.waves + STEPS.unsqueeze(1)


def get_inputs():
    return [torch.randn(7, 40, 12)]


def get_init_inputs():
    return [12]
