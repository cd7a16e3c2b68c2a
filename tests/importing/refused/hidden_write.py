import numpy as np
import torch
from torch import nn


class Model(nn.Module):
    def forward(self, scores, hidden):
        return scores.masked_fill(hidden, 0.0).sum(1)


def get_inputs():
    hidden = torch.zeros(24, 24, dtype=torch.bool)
    hidden.numpy()[np.triu_indices(24)] = True
    return [torch.randn(24, 24), hidden]


def get_init_inputs():
    return []
