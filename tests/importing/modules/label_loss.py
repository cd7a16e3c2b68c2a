import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def forward(self, scores, labels, signs):
        hinge = torch.clamp(1 - scores[:, 0] * signs, min=0).mean()
        return F.cross_entropy(scores, labels) + hinge


def get_inputs():
    return [
        torch.rand(128, 10),
        torch.randint(0, 10, (128,)),
        torch.randint(0, 2, (128,)).float() * 2 - 1,
    ]


def get_init_inputs():
    return []
