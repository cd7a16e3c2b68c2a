import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, grow):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels, grow * channels, 1, bias=False),
            nn.BatchNorm2d(grow * channels),
            nn.SiLU(),
            nn.Conv2d(
                grow * channels, grow * channels, 3, padding=1, groups=grow * channels, bias=False
            ),
            nn.BatchNorm2d(grow * channels),
            nn.SiLU(),
            nn.Conv2d(grow * channels, channels, 1, bias=False),
            nn.BatchNorm2d(channels),
            nn.Dropout(0.1),
        )

    def forward(self, x):
        return x + self.body(x)


class Model(nn.Module):
    """A network of many layers, with the depth of a complete model."""

    def __init__(self, blocks, channels, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(*[Block(channels, 2) for _ in range(blocks)])
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)
        )

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


def get_inputs():
    return [torch.rand(2, 3, 64, 64)]


def get_init_inputs():
    return [24, 16, 10]
