import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(
            width, heads, dim_feedforward=2 * width, activation="gelu", batch_first=True
        )

    def forward(self, x):
        return self.layer(x)


def get_inputs():
    return [torch.randn(3, 21, 32)]


def get_init_inputs():
    return [32, 4]
