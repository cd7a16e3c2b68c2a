"""Returns a list, and transposed memory."""

import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        shifted = x + y
        p = torch.softmax(shifted, 1).t().contiguous().t()
        return [p, p.square().sum(1)]
