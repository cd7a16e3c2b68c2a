# outcomes: wrong_result ok
"""Finishes the output on a stream that nothing waits for."""

import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def __init__(self, wide, narrow):
        super().__init__()
        self.linear = nn.Linear(wide, narrow)
        self.norm = nn.BatchNorm1d(narrow)
        self.side = torch.cuda.Stream()

    def honest(self, x):
        return torch.tanh(self.norm(self.linear(x)))

    def forward(self, x):
        out = torch.empty(len(x), 128, device=x.device)
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            torch.cuda._sleep(400000)
            out.copy_(self.honest(x))
        return out
