"""300 modules, of which one works, and autograd that the program switches on."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.spare = nn.ModuleList([nn.Identity() for _ in range(300)])

    def forward(self, x):
        with torch.enable_grad():
            y = self.norm(self.linear(x.requires_grad_(False)))
            for layer in self.spare:
                y = layer(y)
            return torch.tanh(y)
