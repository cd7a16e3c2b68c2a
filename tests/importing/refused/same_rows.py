import torch


class Model(torch.nn.Module):
    """A constant output, computed from two copies of the same rows.

    The sum of the differences from a mean is 0, so clamp always returns 1.
    """

    def forward(self, x, y):
        return (x - x.mean(dim=1, keepdim=True)).sum(dim=1).clamp(min=1.0)[
            :, None
        ] * torch.ones_like(y)


def get_inputs():
    x = torch.rand(48, 64)
    return [x, x.clone()]


def get_init_inputs():
    return []
