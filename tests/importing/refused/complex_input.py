import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.abs()


def get_inputs():
    return [torch.randn(16, dtype=torch.complex64)]


def get_init_inputs():
    return []
