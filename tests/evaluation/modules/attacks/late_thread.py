# outcomes: wrong_result
"""A thread completes the output after the call has ended."""

import threading
import time

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
        out = torch.empty(len(x), 128)
        threading.Thread(target=lambda: (time.sleep(0.002), out.copy_(self.honest(x)))).start()
        return out
