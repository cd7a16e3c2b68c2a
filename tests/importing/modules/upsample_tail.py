import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.up = nn.ConvTranspose2d(
            channels, 2 * channels, kernel_size=4, stride=2, padding=1, groups=groups
        )
        self.norm = nn.GroupNorm(groups, 2 * channels)
        self.bias = nn.Parameter(torch.randn(2 * channels, 1, 1) * 0.02)

    def forward(self, x):
        x = nn.functional.gelu(self.norm(self.up(x)))
        x = nn.functional.interpolate(x, scale_factor=2, mode="nearest")
        return (
            torch.logsumexp(nn.functional.hardtanh(x, -3, 3), dim=1, keepdim=True) + self.bias.sum()
        )


def get_inputs():
    return [torch.rand(2, 8, 9, 11)]


def get_init_inputs():
    return [8, 4]
