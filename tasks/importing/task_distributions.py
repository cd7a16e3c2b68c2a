"""Chooses the distributions that a task uses."""

import torch
from source_file import Failure

# How each distribution but `declared` changes drawn values; the second argument is a generator.
CHANGES = {
    "shifted": lambda x, _: 10 * x + 25,
    "small": lambda x, _: x / 1000,
    "outliers": lambda x, g: x
    + (torch.rand(x.shape, generator=g) < 2e-4)
    * torch.where(torch.rand(x.shape, generator=g) < 0.5, -500.0, 500.0),
}


def usable_distributions(outputs, notes):
    """Returns the names of the distributions that do not make finite outputs infinite or NaN.

    outputs: a function that returns the reference's outputs for inputs that are drawn with a change
    of CHANGES, or as declared if the change is None.
    notes: a list to which notes are added, for distributions that are left out and for outputs that
    do not depend on the inputs.

    All distributions are usable if outputs are not finite with inputs as declared. Raises Failure
    if an output holds no finite number with inputs as declared: a program whose outputs are all NaN
    would then be correct.
    """

    def declared_alone():
        notes.append("distributions are limited to declared: the reference fails with the others")
        return ["declared"]

    try:
        declared, again = outputs(None), outputs(None)
    except (RuntimeError, Failure):
        return declared_alone()
    for i, t in enumerate(declared, 1):
        if t.dtype.is_floating_point and t.numel() and not torch.isfinite(t).any():
            raise Failure(
                f"with inputs as the task declares them, output {i} holds no finite number"
            )
    if all(torch.equal(a, b) for a, b in zip(declared, again)):
        notes.append("its outputs do not depend on the values of its inputs")
    if not are_finite(declared):
        return ["declared", *CHANGES]
    try:
        usable = [
            "declared",
            *(name for name, change in CHANGES.items() if are_finite(outputs(change))),
        ]
    except (RuntimeError, Failure):
        return declared_alone()
    if len(usable) < 4:
        notes.append(
            "distributions are limited to "
            + ", ".join(usable)
            + ": the others give outputs that are not finite"
        )
    return usable


def are_finite(outputs):
    """Returns True if all floating-point outputs are finite in every element."""
    return all(torch.isfinite(t).all() for t in outputs if t.dtype.is_floating_point)
