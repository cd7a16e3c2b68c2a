import torch
from torch import nn

torch.set_default_device("cuda")


class Model(nn.Module):
    """Factories that other collections of modules have."""

    def __init__(self, features, scale=1.0):
        super().__init__()
        self.lin = nn.Linear(features, features)
        self.register_buffer("scale", torch.tensor(data=scale))

    def train(self, mode=True):
        super().train(mode)

    def forward(self, x):
        return self.lin(x) * self.scale + torch.arange(x.size(1))


def get_inputs():
    generator = torch.Generator(device="cuda").manual_seed(3)
    yield torch.randn(30, 12, generator=generator)


def get_init_inputs():
    return [[], {"features": 12, "scale": 0.5}]
