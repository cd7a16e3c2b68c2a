import torch


class Model(torch.nn.Module):
    """A recurrent step from a state that is no buffer.

    The weights are larger than an import makes with real tensors.
    """

    def __init__(self, width, batch):
        super().__init__()
        self.state = torch.randn(batch, width)
        self.into = torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return torch.tanh(self.into(torch.cat([x, self.state], dim=1)))


width = 16384
batch = 32


def get_inputs():
    return [torch.randn(batch, width)]


def get_init_inputs():
    return [width, batch]
