import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []
        while True:
            self.kept.append(bytearray(1 << 26))


def get_inputs():
    return [torch.rand(4)]


def get_init_inputs():
    return []
