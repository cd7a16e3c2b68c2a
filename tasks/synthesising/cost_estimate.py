"""Estimates how long a reference takes on a GPU, without one."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

# Rates of an H100 in practice: bytes and floating-point operations a second, and the seconds
# that the smallest kernel takes.
BYTES_A_SECOND = 2.2e12
FLOPS_A_SECOND = 4e13  # float32 without TF32
MIN_KERNEL_S = 2.5e-6


class OperatorCosts(TorchDispatchMode):
    """Adds up the `seconds` of the operators that run under it. largest: bytes of one of them."""

    def __init__(self):
        super().__init__()
        self.seconds, self.largest = 0.0, 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        out = operator(*args, **(kwargs or {}))
        if operator.is_view:
            return out
        tensors = [
            t
            for t in torch.utils._pytree.tree_leaves([args, kwargs, out])
            if isinstance(t, torch.Tensor)
        ]
        moved = sum(t.numel() * t.element_size() for t in tensors)
        self.largest = max(self.largest, moved)
        count = flop_registry.get(operator.overloadpacket)
        flops = count(*args, **(kwargs or {}), out_val=out) if count else 0
        self.seconds += max(moved / BYTES_A_SECOND, flops / FLOPS_A_SECOND, MIN_KERNEL_S)
        return out


def estimate(forward, arguments):
    """Returns the seconds of a call and the bytes of its largest operator.

    forward: the reference. arguments: shapes with dtypes.
    """
    tensors = [torch.empty(shape, dtype=dtype, device="meta") for shape, dtype in arguments]
    counter = OperatorCosts()
    with counter:
        forward(*tensors)
    return counter.seconds, counter.largest
