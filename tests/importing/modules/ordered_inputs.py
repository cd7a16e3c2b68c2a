import torch
from torch import nn


class Model(nn.Module):
    """What holds between the elements of its inputs holds in the task as well."""

    def forward(self, x, edges, totals, matrices):
        return torch.bucketize(x, edges), x + totals[-1], torch.linalg.cholesky_ex(matrices)[0]


def get_inputs():
    a = torch.randn(5, 12, 12)
    return [
        torch.randn(40, 33),
        torch.rand(24).sort(descending=True)[0].flip(0),
        torch.cumsum(torch.rand(21), 0),
        a @ a.transpose(1, 2) + 12 * torch.eye(12),
    ]


def get_init_inputs():
    return []
