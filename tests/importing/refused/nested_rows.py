import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x):
        rows = torch.nested.nested_tensor([x[:3], x[3:8]])
        return self.layer(rows).to_padded_tensor(0.0)


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
