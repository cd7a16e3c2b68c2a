import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size, channels, height, width = 8, 6, 32, 40


class Model(nn.Module):
    def __init__(self, channels, out_channels):
        super(Model, self).__init__()
        self.conv = nn.Conv2d(channels, out_channels, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(out_channels)
        self.act = nn.LeakyReLU(0.2, inplace=True)
        self.drop = nn.Dropout2d(0.3)

    def forward(self, x):
        x = self.drop(self.act(self.norm(self.conv(x))))
        return F.adaptive_avg_pool2d(F.max_pool2d(x, kernel_size=2), 1).flatten(1)


def get_inputs():
    return [torch.rand(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, 16]
