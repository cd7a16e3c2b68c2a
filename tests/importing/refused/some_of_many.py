import torch


class Model(torch.nn.Module):
    def forward(self, x, rows):
        return torch.zeros(100, 16).index_copy(0, rows, x)


def get_inputs():
    return [torch.randn(12, 16), torch.randperm(100)[:12]]


def get_init_inputs():
    return []
