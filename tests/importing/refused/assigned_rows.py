import torch
from torch import nn


class Model(nn.Module):
    def forward(self, nodes, edges):
        return torch.zeros(20, nodes.size(1)).index_add(0, edges[1], nodes[edges[0]])


def get_inputs():
    edges = torch.empty(2, 300, dtype=torch.int64)
    edges[0] = torch.randint(0, 50, (300,))
    edges[1] = torch.randint(0, 20, (300,))
    return [torch.randn(50, 16), edges]


def get_init_inputs():
    return []
