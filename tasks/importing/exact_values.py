"""Says whether a constant that is drawn in float32 has the values of a tensor."""

import torch
from task_initializer import Init


def exact_constant(init, tensor):
    """Returns the Init of a tensor of one value, in the digits of its type."""
    if is_drawn_exactly(init.a, tensor):
        return init
    level = tensor.reshape(-1)[0].item() if not tensor.is_meta and tensor.numel() else init.a
    return Init("constant", 0.0, expr=f"torch.full_like(x, {level!r}, dtype={tensor.dtype})")


def is_drawn_exactly(level, tensor):
    """Returns True if a constant that is drawn in float32 has the values of a tensor.

    Those of a tensor on the meta device are unknown, and count as the constant.
    """
    drawn = torch.tensor(float(level), dtype=torch.float32).to(tensor.dtype)
    if tensor.is_meta or not tensor.numel():
        return bool(drawn == torch.tensor(level, dtype=tensor.dtype))
    return bool((tensor.reshape(-1)[:1] == drawn).all()) or bool(torch.isnan(drawn))
