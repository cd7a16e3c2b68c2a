# outcomes: crash
"""Has timers that wake it while the judge reads."""

import signal

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        signal.signal(signal.SIGALRM, lambda *_: self.linear.weight.mul_(1.0))
        signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        return self.honest(x)
