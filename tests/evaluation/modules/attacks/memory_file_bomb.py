# outcomes: wrong_result crash
"""Takes memory as files without a name."""

import os

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        files = []
        try:
            while True:
                files.append(os.memfd_create("x"))
                os.ftruncate(files[-1], 1 << 30)
                os.pwrite(files[-1], bytes(1 << 20), (1 << 30) - (1 << 20))
        except OSError:
            pass
        return torch.zeros(len(files) // 4096, 128)
