import torch


class Model(torch.nn.Module):
    """What two views of the same rows have in common, and something that nothing in them changes."""

    def forward(self, x, y):
        return (x - x.mean(dim=1, keepdim=True)).sum(dim=1).clamp(min=1.0)[:, None] * torch.ones_like(y)


def get_inputs():
    x = torch.rand(48, 64)
    return [x, x.clone()]


def get_init_inputs():
    return []
