import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    def forward(self, x, classes):
        return -(torch.log_softmax(x, 1) * classes).sum(1)


def get_inputs():
    return [torch.randn(40, 5), F.one_hot(torch.randint(0, 5, (40,)), 5).float()]


def get_init_inputs():
    return []
