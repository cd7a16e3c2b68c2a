"""Densities of distributions, whose arguments PyTorch checks."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x, actions):
        policy = torch.distributions.Categorical(logits=self.layer(x))
        normal = torch.distributions.Normal(x, 1.0)
        return policy.log_prob(actions), policy.entropy(), normal.log_prob(x.flip(0))


def get_inputs():
    return [torch.randn(32, 16), torch.randint(0, 8, (32,))]


def get_init_inputs():
    return []
