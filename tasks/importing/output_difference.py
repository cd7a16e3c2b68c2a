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
        a, b = a.double(), b.double()
        finite = torch.isfinite(a)
        if not torch.equal(finite, torch.isfinite(b)):
            return f"output {i}: the positions of values that are not finite differ"
        scale = a[finite].square().mean().sqrt() if finite.any() else torch.zeros(())
        limit = TOLERANCE.get(expected[i - 1].dtype, 1e-4)
        worst = ((a - b).abs() - limit * a.abs())[finite].max() if finite.any() else torch.zeros(())
        if worst > limit * max(scale.item(), 1e-30):
            return (
                f"output {i} differs by up to {(a - b)[finite].abs().max().item():.3g} "
                f"where the root mean square is {scale.item():.3g}"
            )
    return None
