import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, keep, weights):
        kept = torch.where(keep.unsqueeze(-1), x, torch.zeros_like(x))
        total = (kept * weights.unsqueeze(-1)).sum(1)
        return total / keep.sum(1, keepdim=True).clamp(min=1)


def get_inputs():
    return [
        torch.randn(10, 30, 8),
        torch.rand(10, 30) > 0.5,
        torch.softmax(torch.randn(10, 30), dim=-1),
    ]


def get_init_inputs():
    return []
