import torch
import a_package_that_nobody_has


class Model(torch.nn.Module):
    def forward(self, x):
        return a_package_that_nobody_has.f(x)


def get_inputs():
    return [torch.randn(16)]


def get_init_inputs():
    return []
