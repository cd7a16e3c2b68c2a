import torch


class Model(torch.nn.Module):
    """Picks the score of each row's label. Only the rows of x are free, not its columns."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(32, 10)

    def forward(self, x, labels):
        scores = torch.log_softmax(self.layer(x), -1)
        return -scores.gather(1, labels[:, None]).mean()


def get_inputs():
    return [torch.randn(48, 32), torch.randint(0, 10, (48,))]


def get_init_inputs():
    return []
