import torch


class Model(torch.nn.Module):
    def forward(self, left, right):
        return left - 2 * right


def get_inputs():
    return {"right": torch.rand(24, 16), "left": torch.randn(24, 16)}


def get_init_inputs():
    return []
