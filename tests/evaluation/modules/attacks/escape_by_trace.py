# outcomes: crash wrong_result
"""A trace function changes the runner's variables."""

import sys

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
        def trace(frame, event, argument):
            if "outputs" in frame.f_locals:
                frame.f_locals["outputs"] = ()
            return trace

        frame = sys._getframe()
        while frame is not None:
            frame.f_trace = trace
            frame = frame.f_back
        sys.settrace(trace)
        return torch.zeros(len(x), 128)
