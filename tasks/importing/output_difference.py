"""Compares the outputs of a reference with those of its module."""

import torch

# The judge's default tolerances (doc/evaluation.md, section 2). All other types have 1e-4.
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 2e-2, torch.float64: 1e-9}


def difference(expected, given):
    """Returns how the outputs differ, in words, or None if they agree.

    Both arguments are lists of tensors. Shapes and types must be equal, integers and booleans
    exactly so; floating-point values must agree within `TOLERANCE`.
    """
    if len(expected) != len(given):
        return f"{len(given)} outputs, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(expected, given), 1):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i} is {b.dtype} {list(b.shape)}, expected {a.dtype} {list(a.shape)}"
        if not a.dtype.is_floating_point:
            if not torch.equal(a, b):
                return f"output {i} differs"
            continue
        a, b = a.double().flatten(), b.double().flatten()
        finite = torch.isfinite(a)
        if not torch.equal(finite, torch.isfinite(b)):
            return f"output {i}: the positions of values that are not finite differ"
        if not finite.all():
            a, b = a[finite], b[finite]
        if a.numel() == 0:
            continue
        scale = a.square().mean().sqrt().item()
        limit = TOLERANCE.get(expected[i - 1].dtype, 1e-4)
        off = (a - b).abs_()
        if a.abs().mul_(-limit).add_(off).max() > limit * max(scale, 1e-30):
            return (
                f"output {i} differs by up to {off.max().item():.3g} "
                f"where the root mean square is {scale:.3g}"
            )
    return None
