"""Finds out whether the outputs of a reference say anything about its inputs."""

import torch
from source_file import Failure

# Outputs for different inputs must differ by this many times the error of float32. It is what the
# judge allows of an element (doc/evaluation.md section 2).
MIN_VARIATION = 16
# Share of an output's elements that differ for other inputs at least. The others may be zeros.
MIN_VARYING = 0.01


def has_result(draw, call, notes):
    """Returns False if the outputs are rounding errors or do not depend on the inputs.

    draw: a function that returns inputs. call: a function that returns the reference's outputs for
    inputs, and in float64 if its second argument is True.
    notes: a list to which the reason is added.

    Raises Failure if an output holds no finite number (a program whose outputs are all NaN would
    then be correct), or if the shape of an output depends on values.
    """
    one, another = draw(), draw()
    own, other = call(one), call(another)
    for i, t in enumerate(own, 1):
        if t.dtype.is_floating_point and t.numel() and not torch.isfinite(t).any():
            raise Failure(
                f"with inputs as the task declares them, output {i} holds no finite number"
            )
    for i, (a, b) in enumerate(zip(own, other), 1):
        if a.shape != b.shape:
            raise Failure(
                f"the shape of output {i} depends on the values of the inputs "
                f"({list(a.shape)} and {list(b.shape)} in two calls); outputs of a task have "
                "shapes that follow from those of its inputs"
            )
    if all(torch.equal(a, b) for a, b in zip(own, other)):
        notes.append("no result: its outputs do not depend on the values of its inputs")
        return False
    try:
        exact, other_exact = call(one, True), call(another, True)
    except RuntimeError:  # it works in its own types only
        return True
    noise = [
        i
        for i, (a, b, *runs) in enumerate(zip(own, other, exact, other_exact), 1)
        if not torch.equal(a, b) and is_rounding_error(a, *runs)
    ]
    if noise:
        which = "outputs are" if len(noise) == len(own) else f"output {noise[0]} is"
        of = "errors" if len(noise) == len(own) else "error, so a program may leave it out"
        notes.append(f"no result: its {which} rounding {of}")
        return False
    return True


def require_finite(outputs):
    """Raises Failure unless outputs for drawn inputs are finite, as those for the file's are."""
    for i, output in enumerate(outputs, 1):
        lost = 1 - float(output.isfinite().double().mean()) if output.numel() else 0
        if lost > 0:
            raise Failure(
                f"output {i} has numbers that are not finite ({100 * lost:.2g} %) with inputs as "
                "the task would draw them, and none with the file's: something that holds in the "
                "file's inputs is lost; make each from one draw with operators of TorchScript"
            )


def is_rounding_error(own, exact, other_exact):
    """Returns True if an output for other inputs differs by no more than its rounding error."""
    if not own.dtype.is_floating_point:
        return bool(torch.equal(exact, other_exact))
    error = (own.double() - exact.double()).abs()
    variation = (exact.double() - other_exact.double()).abs()
    varies = variation > 0
    if varies.double().mean() < MIN_VARYING:
        return True
    return bool(variation[varies].median() <= MIN_VARIATION * error[varies].nanmedian())
