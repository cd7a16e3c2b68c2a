import torch


class Model(torch.nn.Module):
    def forward(self, x, totals):
        return x / totals[:, None]


def get_inputs():
    x = torch.rand(16, 24)
    return [x, x.sum(1)]


def get_init_inputs():
    return []
