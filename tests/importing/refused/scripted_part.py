import torch


class Part(torch.nn.Module):
    def forward(self, x):
        return x.relu()


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.part = torch.jit.script(Part())

    def forward(self, x):
        return self.part(x)


def get_inputs():
    return [torch.randn(16, 24)]


def get_init_inputs():
    return []
