"""Imports that Python makes late, a thread that is joined, and a slow first call."""

import threading
import time

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        import concurrent.futures  # noqa: F401
        import decimal  # noqa: F401

        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.is_first = True

    def forward(self, x):
        if self.is_first:
            self.is_first = False
            time.sleep(1.2)
        result = []
        half = len(x) // 2
        work = threading.Thread(target=lambda: result.append(self.part(x[half:])))
        work.start()
        first = self.part(x[:half])
        work.join()
        return torch.cat([first, result[0]])

    def part(self, x):
        with torch.no_grad():
            return torch.tanh(self.norm(self.linear(x)))
