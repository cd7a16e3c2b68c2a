"""Finds out how a module's file draws its inputs and parameters.

`init_from` turns a call of a call_recording.Record into an `Init`, the `init` of a task file.
"""

import torch
from call_recording import Call
from init_expression import init_from_expression, init_from_parts
from recorded_draws import affine, constant_of, init_of_draw, is_draw
from task_initializer import Init

# Operators whose result has the elements of their argument in another order or shape.
REARRANGEMENTS = {
    "transpose",
    "t",
    "permute",
    "view",
    "_unsafe_view",
    "reshape",
    "unsqueeze",
    "squeeze",
}


def init_from(call, dtype):
    """Returns the Init of a recorded call's result, or None if its values must be measured.

    dtype: the type of the tensor that the values are cast to.
    """
    if call is None:
        return None
    level = constant_of(call)
    if level is not None:
        return Init("constant", level)
    if is_draw(call):
        return coin_or(init_of_draw(call), dtype)
    # Only casts inside an expression matter: the judge casts the result to the tensor's own type.
    if call.name in ("detach", "alias", "clone", "lift_fresh", "contiguous") or (
        call.name == "_to_copy" and loses_nothing(call, dtype)
    ):
        return init_from(call.args[0], dtype)
    if call.name in REARRANGEMENTS and isinstance(call.args[0], Call):
        # All elements have the same distribution, so their order does not matter.
        known = init_from(call.args[0], dtype)
        if known is not None and not known.expr and known.of not in ("permutation", "constant"):
            return known
    if call.name == "expand" and isinstance(call.args[0], Call):
        return expanded(call.args[0], call.shape, dtype)
    if call.name == "copy_" and isinstance(call.args[1], Call) and call.args[1].shape == call.shape:
        return init_from(call.args[1], dtype)
    inner = call.args[0] if call.args and isinstance(call.args[0], Call) else None
    name = call.name.removesuffix("_")
    if (
        name in ("add", "sub", "mul", "div")
        and inner is not None
        and len(call.args) == 2
        and isinstance(call.args[1], (int, float))
        and not call.kwargs
        and dtype.is_floating_point
    ):
        known = init_from(inner, dtype)
        if known is not None and not known.expr and known.of == "uniform":
            a, b = affine(name, known.a, known.b, call.args[1])
            return Init("uniform", min(a, b), max(a, b))
        if known is not None and not known.expr and known.of == "normal":
            mean = affine(name, known.a, 0.0, call.args[1])[0]
            spread = (
                known.b
                if name in ("add", "sub")
                else abs(affine(name, known.b, 0.0, call.args[1])[0])
            )
            return Init("normal", mean, spread)
    return coin_or(init_from_expression(call) or init_from_parts(call), dtype)


def expanded(call, shape, dtype):
    """Returns the Init of a recorded call's result that is expanded to a shape, or None."""
    known = init_from(call, dtype)
    if known is None or known.expr or known.of not in ("uniform", "normal", "integers"):
        return None
    missing = len(shape) - len(call.shape)
    text = "x"
    for dim, extent in enumerate(shape):
        if extent > 1 and (dim < missing or call.shape[dim - missing] == 1):
            text += f".narrow({dim}, 0, 1)"
    return Init(known.of, known.a, known.b, "" if text == "x" else f"{text}.expand_as(x)")


def coin_or(init, dtype):
    """Returns a coin, the default of a bool, if `init` is a fair one; else `init`."""
    fair = (
        init is not None
        and dtype == torch.bool
        and init.of == "uniform"
        and (init.a, init.b) == (0.0, 1.0)
        and init.expr in ("x < 0.5", "x > 0.5", "x >= 0.5", "x <= 0.5")
    )
    if (
        init is not None
        and dtype == torch.bool
        and init.of == "integers"
        and (init.a, init.b) == (0, 2)
        and not init.expr
    ):
        fair = True
    return Init("coin") if fair else init


def loses_nothing(call, dtype):
    """Returns True if the cast `call` may be left out before a cast to `dtype`."""
    return (
        isinstance(call.args[0], Call)
        and (
            call.dtype == dtype or torch.promote_types(call.dtype, call.args[0].dtype) == call.dtype
        )
        and (call.dtype.is_floating_point or not call.args[0].dtype.is_floating_point)
    )
