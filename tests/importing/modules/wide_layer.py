import torch
from torch import nn

batch = 2048
inner = 32768


class Model(nn.Module):
    """A layer with more parameters and inputs than an import makes with real tensors."""

    def __init__(self, features):
        super().__init__()
        self.up = nn.Linear(features, features)

    def forward(self, x):
        return torch.tanh(self.up(x)).sum(dim=1)


def get_inputs():
    return [torch.rand(batch, inner)]


def get_init_inputs():
    return [inner]
