import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    """Attention with a mask that is added, of a type that the code names."""

    def forward(self, q, k, v, padded):
        mask = torch.zeros_like(padded, dtype=torch.float32)
        mask = mask.masked_fill(padded, float("-inf"))[:, None, None, :]
        mask = mask.masked_fill(mask.isneginf().all(-1, keepdim=True), 0.0)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def get_inputs():
    return [*(torch.randn(4, 2, 10, 8) for _ in range(3)), torch.rand(4, 10) < 0.3]


def get_init_inputs():
    return []
