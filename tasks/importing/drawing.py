"""Finds out how a module's file draws its inputs and parameters (doc/decisions/011).

`Record` records the operator calls while the file's own code runs. `init_from` turns a recorded
call into an `Init`, the `init` of a task file.
"""

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import reference

# The types that tasks support, with their names in task files.
DTYPES = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.bool: "bool",
}


class AnyDevice(TorchFunctionMode):
    """Makes tensors on the default device, whatever device a file names, and never pins memory."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in ("cuda", "pin_memory") and args and isinstance(args[0], torch.Tensor):
            return args[0]
        if func is torch.Tensor.to:
            args = tuple(a for i, a in enumerate(args) if i == 0 or not is_device(a))
            kwargs.pop("device", None)
            if len(args) == 1 and not kwargs:
                return args[0]
        elif "device" in kwargs and is_device(kwargs["device"]):
            kwargs.pop("device")
        kwargs.pop("pin_memory", None)
        if func is torch.tensor and isinstance(args[0], (bool, int, float)):
            return torch.full((), args[0], **kwargs)  # an equal tensor, made by a recordable call
        return func(*args, **kwargs)


def is_device(value):
    """Returns True if `value` is a device other than meta, or the name of a CPU or CUDA device."""
    return (
        isinstance(value, torch.device)
        and value.type != "meta"
        or isinstance(value, str)
        and value.split(":")[0] in ("cuda", "cpu")
    )


class Call:
    """A recorded operator call.

    Tensors among the arguments are replaced by the Calls that made them, or by None if their origin
    is unknown. `shape` and `dtype` are those of the result.
    """

    def __init__(self, target, args, kwargs, output):
        self.target, self.args, self.kwargs = target, args, kwargs
        self.shape, self.dtype = tuple(output.shape), output.dtype
        self.name = target._schema.name.split("::")[1]


class Record(TorchDispatchMode):
    """Records for every tensor the call that gave it its values.

    A write into a whole storage drops the records of the storage's other views; a write into a part
    drops all records of the storage.
    """

    def __init__(self):
        super().__init__()
        self.calls = {}  # storage -> (offset, shape, strides) -> Call
        self.kept = []  # recorded tensors, kept so that no address of a storage is reused

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        known = torch.utils._pytree.tree_map_only(torch.Tensor, self.look_up, (list(args), kwargs))
        result = func(*args, **kwargs)
        for position, output in enumerate(
            result if isinstance(result, (tuple, list)) else [result]
        ):
            if isinstance(output, torch.Tensor) and output.layout == torch.strided:
                self.remember(func, known, output, position, isinstance(result, (tuple, list)))
        return result

    @staticmethod
    def place_of(tensor):
        """Returns a tensor's storage and its place there, the two keys of `calls`."""
        return tensor.untyped_storage()._cdata, (
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
        )

    def look_up(self, tensor):
        """Returns the Call that gave a tensor its values, or None if it is unknown."""
        if tensor.layout != torch.strided:
            return None
        storage, view = self.place_of(tensor)
        return self.calls.get(storage, {}).get(view)

    def remember(self, func, known, output, position, is_one_of_several):
        """Records an operator's result. `known`: the arguments with Calls in place of tensors."""
        storage, view = self.place_of(output)
        self.kept.append(output)
        call = Call(func, known[0], known[1], output)
        if is_one_of_several:
            call = None  # results of max, sort or split are measured instead
        if func._schema.is_mutable:
            whole = output.numel() * output.element_size() == output.untyped_storage().nbytes()
            self.calls[storage] = {view: call} if whole else {}
        else:
            self.calls.setdefault(storage, {})[view] = call


class Init:
    """The `init` of a task's tensor: the counterpart of `initializer` in tasks/task_file.hpp.

    of: normal, uniform, integers, constant, permutation or coin.
    a, b: mean and standard deviation, bounds (`b` excluded), or the value; a bound of integers may
    be a size's name.
    expr: a TorchScript expression over the drawn x, or empty.
    """

    def __init__(self, of, a=0.0, b=1.0, expr=""):
        self.of, self.a, self.b, self.expr = of, a, b, expr
        self.note = ""

    def text(self):
        """Returns the value of `init` as TOML; empty for a coin, which needs no `init`."""
        if self.of == "coin":
            return ""
        name = {
            "normal": f"normal({plain(self.a)},{plain(self.b)})",
            "uniform": f"uniform({plain(self.a)},{plain(self.b)})",
            "integers": f"integers({plain(self.a)},{plain(self.b)})",
            "constant": f"constant({plain(self.a)})",
        }.get(self.of, self.of)
        name = {"normal(0,1)": "normal", "uniform(0,1)": "uniform"}.get(name, name)
        return f'{{ of = "{name}", expr = {quoted(self.expr)} }}' if self.expr else f'"{name}"'

    def raw(self, shape, sizes, generator):
        """Draws values of the kind `of` as the judge does, without `expr`."""
        bounds = [sizes.get(v, v) for v in (self.a, self.b)]
        if self.of == "normal":
            return torch.randn(shape, generator=generator) * self.b + self.a
        if self.of == "uniform":
            return torch.rand(shape, generator=generator) * (self.b - self.a) + self.a
        if self.of == "integers":
            return torch.randint(int(bounds[0]), int(bounds[1]), shape, generator=generator)
        if self.of == "constant":
            return torch.full(shape, float(self.a))
        if self.of == "coin":
            return torch.rand(shape, generator=generator) < 0.5
        rows = torch.rand(shape, generator=generator)
        return rows.argsort(-1) if shape else torch.zeros((), dtype=torch.int64)

    def draw(self, shape, dtype, sizes, generator, change=None):
        """Draws a tensor as the judge does.

        sizes: the task's sizes by name. change: one of agreement.CHANGES, applied to normal and
        uniform values without an expression. Raises ValueError if the expression changes the shape.
        """
        x = self.raw(shape, sizes, generator)
        if self.expr:
            unit = torch.jit.CompilationUnit(
                reference.runnable(f"def f(x: Tensor) -> Tensor:\n    return {self.expr}\n")
            )
            x = unit.f(x)
            if tuple(x.shape) != tuple(shape):
                raise ValueError("the expression changes the shape")
        elif change is not None and self.of in ("normal", "uniform"):
            x = change(x, generator)
        return x.to(dtype).contiguous()


def plain(value):
    """Returns a number, or a size's name, as it stands in a task file's `init`."""
    if isinstance(value, str):
        return value
    return (
        repr(int(value))
        if float(value).is_integer() and abs(value) < 2**53
        else f"{float(value):.9g}"
    )


def quoted(text):
    """Returns a TOML string of a text without control characters."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def leaves_of(call, found, seen=None):
    """Appends to `found`, and returns, the draws that a call's values depend on.

    Appends None for a tensor of unknown origin.
    """
    seen = set() if seen is None else seen
    if call is None:
        found.append(None)
        return found
    if id(call) in seen or (call.shape == () and constant_of(call) is not None):
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
            leaves_of(argument, found, seen)
    if any(
        a is None and t.startswith("Tensor")
        for a, t in zip(call.args, [str(s.type) for s in call.target._schema.arguments])
    ):
        found.append(None)
    return found


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


def init_of_draw(call):
    """Returns the Init of a draw, or None if no `init` can express it."""
    args, kwargs = call.args, call.kwargs
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
        return Init("uniform", expr=f"x < {reference.number(given['p'])}")
    if call.name == "bernoulli" and isinstance(args[0], Call):
        level = constant_of(args[0])
        return (
            None if level is None else Init("uniform", expr=f"x < {reference.number(float(level))}")
        )
    if call.name == "exponential_":
        return Init(
            "uniform", expr=f"-torch.log(1.0 - x) / {reference.number(float(given['lambd']))}"
        )
    return None


def constant_of(call):
    """Returns the value that all elements of a call's result have, or None if there is none.

    A scalar that is drawn uniformly counts as its mean (doc/decisions/011).
    """
    if call is None:
        return None
    if call.shape == () and is_draw(call):  # all elements of later results share this number
        init = init_of_draw(call)
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
    if is_passed_on(call) or call.name in (
        "expand",
        "view",
        "unsqueeze",
        "_unsafe_view",
        "reshape",
    ):
        return constant_of(call.args[0])
    if (
        call.name in ("mul", "add", "div", "sub")
        and len(call.args) == 2
        and isinstance(call.args[0], Call)
        and isinstance(call.args[1], (int, float))
    ):
        first = constant_of(call.args[0])
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
    return coin_or(init_from_expression(call), dtype)


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
        and (call.dtype == dtype or call.args[0].dtype == dtype)
        and (dtype.is_floating_point or not call.args[0].dtype.is_floating_point)
    )


def init_from_expression(call):
    """Returns an Init with the recorded calls as its expression, or None.

    The calls must depend on one draw of the result's own shape, or on none, and must print in at
    most 300 characters. Extents above 2 of the result are printed as sizes of x.
    """
    leaves = leaves_of(call, [])
    if None in leaves or len({id(leaf) for leaf in leaves}) > 1:
        return None
    drawn = leaves[0] if leaves else None
    if drawn is not None and drawn.shape != call.shape:
        return None
    base = Init("constant", 0.0) if drawn is None else init_of_draw(drawn)
    if base is None:
        return None
    source = f"({base.expr})" if base.expr else "x"
    if base.of in ("uniform", "normal") and drawn.dtype not in (torch.float32, torch.bool):
        source = f"{source}.to({drawn.dtype})"
    extents = {
        extent: f"x.size({i})" for i, extent in reversed(list(enumerate(call.shape))) if extent > 2
    }

    def show(value):
        if isinstance(value, Call):
            return source if value is drawn else text_of(value)
        return None

    def text_of(inner):
        if inner.name in ("copy_",):
            return show(inner.args[1])
        level = constant_of(inner)
        if level is not None:
            shape = ", ".join(extents.get(n, str(n)) for n in inner.shape)
            return f"torch.full([{shape}], {reference.number(level)}, dtype={inner.dtype})"
        args = inner.args
        if inner.name in ("arange", "expand", "view", "linspace", "eye"):
            args = torch.utils._pytree.tree_map_only(
                int,
                lambda n: Size(extents[n]) if n in extents and not isinstance(n, bool) else n,
                args,
            )
        if inner.name.endswith("_") and inner.name.removesuffix("_") in reference.INFIX | {
            "clamp": 0,
            "erfinv": 0,
            "abs": 0,
            "tril": 0,
            "triu": 0,
            "exp": 0,
        }:
            packet = getattr(torch.ops.aten, inner.name.removesuffix("_"))
            overload = getattr(packet, inner.target._overloadname)
            return reference.print_call(
                overload,
                args,
                inner.kwargs,
                lambda v: str(v) if isinstance(v, Size) else show(v),
                lambda v: len(v.shape),
            )
        if inner.target._schema.is_mutable:
            raise reference.Unprintable(inner.name)
        kwargs = {k: v for k, v in inner.kwargs.items()}
        if inner.name in ("arange",) and kwargs.get("dtype") is None:
            kwargs["dtype"] = inner.dtype
        return reference.print_call(
            inner.target,
            args,
            kwargs,
            lambda v: str(v) if isinstance(v, Size) else show(v),
            lambda v: len(v.shape),
        )

    try:
        text = text_of(call)
    except (reference.Unprintable, AttributeError):
        return None
    if len(text) > 300:
        return None
    init = Init(base.of, base.a, base.b, "" if text == "x" else text)
    return init


class Size(str):
    """The text of an extent of the drawn tensor in an expression, such as "x.size(0)"."""


def measured(tensor):
    """Returns the Init of the simple distribution that fits a tensor's values best.

    Raises Unprintable if values are not finite.
    """
    values = tensor.detach()
    if values.numel() == 0:
        return Init("constant", 0.0)
    low, high = (
        values.min().item() if values.dtype != torch.bool else 0,
        values.max().item() if values.dtype != torch.bool else 1,
    )
    if values.dtype == torch.bool:
        share = values.float().mean().item()
        return Init("coin") if abs(share - 0.5) < 0.02 else Init("uniform", expr=f"x < {share:.3g}")
    if low == high:
        return Init("constant", low)
    if not values.dtype.is_floating_point:
        return Init("integers", int(low), int(high) + 1)
    values = values.double()
    if not torch.isfinite(values).all():
        raise reference.Unprintable(
            "it draws values that are not finite in a way that cannot be followed"
        )
    mean, spread = values.mean().item(), values.std(correction=0).item()
    # The kurtosis of a uniform distribution is 1.8, that of a normal one 3.
    kurtosis = ((values - mean) ** 4).mean().item() / max(spread**4, 1e-300)
    if kurtosis < 2.1 and values.numel() >= 64:
        return Init("uniform", float(f"{low:.4g}"), float(f"{high:.4g}"))
    return Init("normal", float(f"{mean:.4g}"), float(f"{spread:.4g}"))
