import torch
from torch import nn


class Model(nn.Module):
    """Numbers that float32 cannot hold: a float64 constant, a large buffer and the lowest integer."""

    def __init__(self):
        super().__init__()
        self.register_buffer("multiplier", torch.tensor(2246822519))
        self.register_buffer("offsets", torch.full((3,), 2**53 + 1))
        self.rate = torch.tensor(0.3, dtype=torch.float64)

    def forward(self, ids, t):
        kept = torch.where(ids > 5, ids, -(2**63))
        return (ids * self.multiplier + self.offsets) // 1024, kept, torch.exp(-t * self.rate)


def get_inputs():
    return [torch.randint(0, 100000, (40, 3)), torch.rand(17, 9, dtype=torch.float64)]


def get_init_inputs():
    return []
