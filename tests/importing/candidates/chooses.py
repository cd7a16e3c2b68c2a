"""Ok: chooses the faster of two equal ways."""

import time

import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.linear = nn.Linear(features, outputs)
        self.norm = nn.BatchNorm1d(outputs)
        self.best = None

    def forward(self, x):
        y = self.norm(self.linear(x))
        if self.best is None:
            times = []
            for way in (torch.relu, torch.nn.functional.relu):
                begin = time.perf_counter()
                way(y)
                times.append((time.perf_counter() - begin, way))
            self.best = min(times, key=lambda timed: timed[0])[1]
        return self.best(y)
