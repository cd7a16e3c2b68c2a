import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.rnn = nn.GRU(
            features, hidden, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2
        )
        self.head = nn.Linear(2 * hidden, 3)

    def forward(self, x):
        steps, last = self.rnn(x)
        return self.head(steps[:, -1]), last


def get_inputs():
    return [torch.rand(6, 200, 10)]


def get_init_inputs():
    return [10, 12]
