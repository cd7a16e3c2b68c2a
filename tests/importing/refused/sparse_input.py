import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        return torch.sparse.mm(x, y)


def get_inputs():
    return [torch.eye(16).to_sparse(), torch.randn(16, 8)]


def get_init_inputs():
    return []
