import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x):
        return torch.nested.to_padded_tensor(self.layer(x), 0.0)


def get_inputs():
    return [torch.nested.nested_tensor([torch.randn(3, 16), torch.randn(5, 16)])]


def get_init_inputs():
    return []
