import torch
from torch import nn


class Model(nn.Module):
    """The embedding of padding is a row of zeros."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(60, 24, padding_idx=0)

    def forward(self, tokens):
        return self.words(tokens).sum(1)


def get_inputs():
    return [torch.randint(0, 60, (40, 12))]


def get_init_inputs():
    return []
