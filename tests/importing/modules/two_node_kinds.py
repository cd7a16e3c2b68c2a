"""Edges from 40 nodes of one kind to 24 of another, and pairs of an amount and a label."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.labels = nn.Embedding(5, width)

    def forward(self, nodes, edges, pairs):
        sums = torch.zeros(24, nodes.size(1)).index_add(0, edges[1], nodes[edges[0]])
        return sums, self.labels(pairs[:, 1].long()) * pairs[:, :1]


def get_inputs():
    edges = torch.stack([torch.randint(0, 40, (300,)), torch.randint(0, 24, (300,))])
    labels = torch.randint(0, 5, (64,)).float()
    return [torch.randn(40, 16), edges, torch.stack([torch.randn(64) * 2 + 1, labels], dim=1)]


def get_init_inputs():
    return [16]
