import numpy
import torch


class Model(torch.nn.Module):
    """Parameters and buffers whose draws are cast, masked or written where PyTorch cannot see it."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 32).to("cuda")
        self.whole = torch.nn.Parameter((torch.randn(32, 32) * 4).to(torch.int8).float())
        self.register_buffer("mask", torch.bernoulli(torch.ones(32, 32), 0.25))
        low = torch.randint(0, 256, (32, 32), dtype=torch.uint8)
        self.register_buffer("low", ((low << 4) >> 4).float())
        self.imaginary = torch.nn.Parameter(
            torch.rand(32, 32, dtype=torch.cfloat).imag.contiguous()
        )
        upper = torch.randn(32, 32)
        upper.numpy()[numpy.tril_indices(32, -1)] = 0
        self.upper = torch.nn.Parameter(upper)
        self.register_buffer("norms", torch.from_numpy((upper.numpy() ** 2).sum(1)))
        self.scale = torch.nn.Parameter(torch.tensor(numpy.log(1 / 0.07)))

    def forward(self, x):
        x = self.layer(x) @ (self.whole * self.mask) @ self.low @ self.imaginary
        return x @ self.upper + self.norms, self.scale.exp() * x.double().mean()


def get_inputs():
    return [torch.randn(16, 32)]


def get_init_inputs():
    return []
