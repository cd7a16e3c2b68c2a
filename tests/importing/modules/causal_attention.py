import math

import torch
from torch import nn


class Model(nn.Module):
    """Self-attention of several heads in which no position sees a later one.

    The mask is a buffer.
    """

    def __init__(self, width, heads, longest):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width, bias=False)
        self.drop = nn.Dropout(0.1)
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest, dtype=torch.bool)))

    def forward(self, x):
        batch, steps, width = x.shape
        q, k, v = (
            t.view(batch, steps, self.heads, width // self.heads).transpose(1, 2)
            for t in self.project(x).chunk(3, dim=-1)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(width // self.heads)
        scores = scores.masked_fill(~self.mask[:steps, :steps], float("-inf"))
        mixed = self.drop(torch.softmax(scores, dim=-1)) @ v
        return self.out(mixed.transpose(1, 2).reshape(batch, steps, width))


def get_init_inputs():
    return [64, 4, 128]


def get_inputs():
    return [torch.randn(4, 96, 64)]
