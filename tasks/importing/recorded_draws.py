"""Finds the draws of random numbers among recorded calls, and values that are all equal."""

import math

import torch
from call_recording import Call
from task_initializer import Init
from torchscript_text import number

# Operators whose result is random.
DRAWS = {
    "rand",
    "randn",
    "randint",
    "randperm",
    "rand_like",
    "randn_like",
    "randint_like",
    "uniform_",
    "normal_",
    "random_",
    "bernoulli_",
    "bernoulli",
    "normal",
    "exponential_",
    "multinomial",
    "poisson",
    "cauchy_",
    "log_normal_",
    "geometric_",
}


def is_draw(call):
    """Returns True if a call draws random numbers."""
    return call.name in DRAWS


def replaces(call):
    """Returns True if a call's result does not depend on the values of its first argument."""
    return call.name in (
        "fill_",
        "zero_",
        "copy_",
        "ones_like",
        "zeros_like",
        "full_like",
        "empty_like",
        "new_zeros",
        "new_ones",
        "new_full",
    )


# Operators whose result holds whatever was in its memory.
UNWRITTEN = {
    "empty",
    "empty_like",
    "empty_strided",
    "empty_permuted",
    "new_empty",
    "new_empty_strided",
}


def is_unwritten(call):
    """Returns True if a call's result was never given values."""
    while call is not None and is_passed_on(call) and call.name != "copy_":
        call = call.args[0]
    return call is not None and call.name in UNWRITTEN


def leaves_of(call, found, seen=None, with_scalars=False):
    """Appends to `found`, and returns, the draws that a call's values depend on.

    Appends None for a tensor of unknown origin. Scalars that count as their mean (constant_of)
    are draws only `with_scalars`.
    """
    seen = set() if seen is None else seen
    if call is None or call.name in UNWRITTEN:
        found.append(None)
        return found
    if id(call) in seen or (
        not with_scalars and call.shape == () and constant_of(call, means=True) is not None
    ):
        return found
    seen.add(id(call))
    if is_draw(call):
        found.append(call)
        return found
    for argument in torch.utils._pytree.tree_leaves(
        (call.args if not replaces(call) else call.args[1:], call.kwargs),
        is_leaf=lambda v: isinstance(v, Call),
    ):
        if isinstance(argument, Call):
            leaves_of(argument, found, seen, with_scalars)
    if any(
        a is None and t.startswith("Tensor")
        for a, t in zip(call.args, [str(s.type) for s in call.target._schema.arguments])
    ):
        found.append(None)
    return found


def init_of_draw(call):
    """Returns the Init of a draw, or None if no `init` can express it."""
    args, kwargs = call.args, call.kwargs
    if call.dtype.is_complex:
        return None
    names = [a.name for a in call.target._schema.arguments]
    given = (
        {a.name: a.default_value for a in call.target._schema.arguments if a.has_default_value()}
        | dict(zip(names, args))
        | kwargs
    )
    if call.name in ("rand", "rand_like"):
        return Init("uniform")
    if call.name in ("randn", "randn_like"):
        return Init("normal")
    if call.name in ("randint", "randint_like"):
        return Init("integers", given.get("low", 0), given["high"])
    if call.name == "randperm":
        return Init("permutation")
    if call.name == "uniform_":
        return Init("uniform", given["from"], given["to"])
    if call.name == "normal_" or (
        call.name == "normal"
        and not isinstance(given.get("mean"), Call)
        and not isinstance(given.get("std"), Call)
        and isinstance(given.get("mean"), float)
    ):
        return Init("normal", given["mean"], given.get("std", 1.0))
    if call.name == "random_" and "to" in given and given["to"] is not None:
        return Init("integers", given.get("from", 0), given["to"])
    if call.name == "bernoulli_" and isinstance(given.get("p"), float):
        return Init("uniform", expr=f"x < {number(given['p'])}")
    if call.name == "bernoulli" and isinstance(args[0], Call):
        level = given["p"] if given.get("p") is not None else constant_of(args[0])
        return None if level is None else Init("uniform", expr=f"x < {number(float(level))}")
    if call.name == "log_normal_":
        return Init("normal", given["mean"], given["std"], "torch.exp(x)")
    if call.name == "cauchy_":
        a, b = number(float(given["median"])), number(float(given["sigma"]))
        return Init("uniform", expr=f"{a} + {b} * torch.tan(3.14159265 * (x - 0.5))")
    if call.name == "geometric_":
        scale = number(math.log1p(-float(given["p"])))
        return Init("uniform", expr=f"torch.floor(torch.log(1.0 - x) / {scale}) + 1.0")
    if call.name == "exponential_":
        return Init("uniform", expr=f"-torch.log(1.0 - x) / {number(float(given['lambd']))}")
    return None


def constant_of(call, means=False):
    """Returns the value that all elements of a call's result have, or None if there is none.

    With `means`, a scalar that is drawn uniformly counts as its mean: in an expression over
    another draw, all elements share this number.
    """
    if call is None:
        return None
    if call.shape == () and is_draw(call):
        init = init_of_draw(call) if means else None
        return (
            (init.a + init.b) / 2
            if init is not None and init.of == "uniform" and not init.expr
            else None
        )
    if call.name in ("zeros", "zero_", "zeros_like", "new_zeros"):
        return 0.0
    if call.name in ("ones", "ones_like", "new_ones"):
        return 1.0
    position = {"full": 1, "fill_": 1, "full_like": 1, "new_full": 2}.get(call.name)
    if (
        position is not None
        and len(call.args) > position
        and isinstance(call.args[position], (int, float, bool))
    ):
        return float(call.args[position])
    if call.name == "copy_":
        return constant_of(call.args[1], means) if isinstance(call.args[1], Call) else None
    if is_passed_on(call) or call.name in (
        "expand",
        "view",
        "unsqueeze",
        "_unsafe_view",
        "reshape",
    ):
        return constant_of(call.args[0], means)
    if (
        call.name in ("mul", "add", "div", "sub")
        and len(call.args) == 2
        and isinstance(call.args[0], Call)
        and isinstance(call.args[1], (int, float))
    ):
        first = constant_of(call.args[0], means)
        return None if first is None else affine(call.name, first, 0.0, call.args[1])[0]
    return None


def is_passed_on(call):
    """Returns True if a call's result is taken to have the values of its first argument."""
    return call.name in (
        "detach",
        "alias",
        "clone",
        "lift_fresh",
        "_to_copy",
        "contiguous",
        "requires_grad_",
        "copy_",
    )


def affine(name, a, b, value):
    """Returns a and b after the operator `name` was applied to each with `value`."""
    return {
        "add": (a + value, b + value),
        "sub": (a - value, b - value),
        "mul": (a * value, b * value),
        "div": (a / value if value else a, b / value if value else b),
    }[name]
