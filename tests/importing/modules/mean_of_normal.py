import torch


class Model(torch.nn.Module):
    """The mean of normalized rows, which is zero up to rounding."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(48, elementwise_affine=False)

    def forward(self, x):
        return self.norm(x).mean(dim=-1)


def get_inputs():
    return [torch.randn(32, 48)]


def get_init_inputs():
    return []
