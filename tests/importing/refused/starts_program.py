import subprocess

import torch

subprocess.run(["/bin/true"], check=True)


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(16)]


def get_init_inputs():
    return []
