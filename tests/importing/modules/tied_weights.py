import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight
        nn.init.trunc_normal_(self.embed.weight, std=0.02)
        self.norm = nn.RMSNorm(width)

    def forward(self, words):
        with torch.no_grad():
            scale = self.embed(words).abs().amax()
        return self.head(self.norm(self.embed(words))) * scale


def get_inputs():
    return [torch.randint(low=0, high=80, size=(4, 25))]


def get_init_inputs():
    return [80, 16]
