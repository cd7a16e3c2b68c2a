# outcomes: cheating ok crash
"""Starts threads that never end."""

import threading
import time

import torch
import torch.nn as nn


def forever():
    while True:
        time.sleep(1000)


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        try:
            while True:
                threading.Thread(target=forever, daemon=True).start()
        except RuntimeError:
            pass
        return self.honest(x)
