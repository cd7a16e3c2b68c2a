"""Element-wise operators, views, and what only renames a tensor."""

import torch
from dims import Dim, broadcast, express
from pointwise_rules import ROWS, SAME, apply_row
from rules import RULES, computed_in_float, number, rule, tensor
from values import Unsupported, Value

POWERS = {0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal", 2.0: "square"}


@rule("clone", "contiguous", "detach", "alias", "positive")
def same(c, x, *_, **__):
    return tensor(x)


@rule("dropout", "alpha_dropout", "feature_dropout")
def dropout(c, x, p=0.5, train=True):
    if train and p:
        raise Unsupported("random numbers")
    return tensor(x)


@rule("to", "type_as", "float")
def convert(c, x, *_, **__):
    return cast(c.b, tensor(x), c.dtype)


def cast(b, x, dtype):
    if x.dtype == dtype:
        return x
    if not dtype.is_floating_point and x.dtype.is_floating_point:
        raise Unsupported("a conversion to integers")
    return b.pointwise("({0})", x, dtype=dtype)


@rule("add")
def add(c, x, y, alpha=1):
    return apply_row(c.b, "add", x, y if alpha == 1 else apply_row(c.b, "mul", y, alpha))


@rule("sub")
def subtract(c, x, y, alpha=1):
    if x is y:
        return c.b.constant(0.0, x.dims, x.dtype)
    if alpha != 1:
        y = apply_row(c.b, "mul", y, alpha)
    return apply_row(c.b, "sub", x, y)


@rule("rsub")
def rsub(c, x, y, alpha=1):
    return subtract(c, y, x, alpha)


@rule("div", "true_divide", "divide")
def divide(c, x, y, rounding_mode=None):
    if rounding_mode is not None:
        raise Unsupported("division with rounding")
    if isinstance(x, Value) and not x.dtype.is_floating_point:
        x = cast(c.b, x, torch.float32)
    return apply_row(c.b, "div", x, y)


@rule("pow")
def power(c, x, exponent):
    computed_in_float(tensor(x))
    if not isinstance(exponent, (int, float)):
        return apply_row(c.b, "pow", x, exponent)
    if float(exponent) in POWERS:
        return apply_row(c.b, POWERS[float(exponent)], x)
    if exponent == int(exponent) and 1 <= exponent <= 8:
        result = x
        for _ in range(int(exponent) - 1):
            result = apply_row(c.b, "mul", result, x)
        return result
    return apply_row(c.b, "pow", x, exponent)


@rule("clamp", "clip")
def clamp(c, x, lo=None, hi=None, min=None, max=None):
    lo, hi = lo if lo is not None else min, hi if hi is not None else max
    if lo is not None:
        x = apply_row(c.b, "clamp_min", x, lo)
    return x if hi is None else apply_row(c.b, "clamp_max", x, hi)


@rule("gelu")
def gelu(c, x, approximate="none"):
    return apply_row(c.b, "gelu" if approximate == "none" else "gelu_tanh", x)


@rule("prelu")
def prelu(c, x, weight):
    dims = [c.b.one()] * x.rank
    if x.rank > 1:
        dims[1] = weight.dims[0]
    return apply_row(c.b, "prelu", x, c.b.reshape(weight, dims))


def added(how):
    def of(c, x, a, d, value=1):
        scaled = apply_row(c.b, "mul", apply_row(c.b, how, a, d), value)
        return apply_row(c.b, "add", x, scaled)

    return of


RULES["addcmul"], RULES["addcdiv"] = added("mul"), added("div")


def of_bools(c, name, *operands):
    if any(tensor(o).dtype != torch.bool for o in operands):
        raise Unsupported("bits of integers")
    return apply_row(c.b, name, *operands)


for name in ("not", "and", "or"):
    RULES[f"bitwise_{name}"] = lambda c, *xs, row=f"logical_{name}": of_bools(c, row, *xs)


@rule("zeros_like", "ones_like", "full_like", "zeros", "ones", "full", "tensor")
def filled(c, like, value=None, **_):
    name = c.facts["operator"]
    number_there = {"z": 0.0, "o": 1.0}.get(name[0], like if name == "tensor" else value)
    known = like.dims if isinstance(like, Value) else []
    if c.shapes[0]:
        columns = [[s[k] for s in c.shapes] for k in range(len(c.shapes[0]))]
        dims = [express(column, known, c.b.cases) for column in columns]
    else:
        dims = []
    if None in dims:
        raise Unsupported("a size that is not said by others")
    return c.b.constant(number(number_there), dims, c.dtype)


def add_rows():
    """Rows without a separate rule are called with the operands as they are."""
    for name in [*ROWS, *SAME]:
        row = SAME.get(name, name)
        if name not in RULES and row in ROWS:
            RULES[name] = lambda c, *operands, row=row: checked_row(c, row, *operands)


def checked_row(c, row, *operands):
    for operand in operands:
        if not isinstance(operand, (Value, int, float)):
            raise Unsupported("an operand that is no tensor and no number")
        if isinstance(operand, Value) and not ROWS[row].is_condition:
            if operand.dtype == torch.float64:
                raise Unsupported("arithmetic in float64")
    return apply_row(c.b, row, *operands)


add_rows()


@rule("view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "view_as")
def reshape(c, x, *_, **__):
    return c.b.reshape_to(tensor(x), c.shapes)


@rule("permute")
def permute(c, x, dims, *more):
    return c.b.permuted(tensor(x), [dims, *more] if more else dims)


@rule("transpose", "swapaxes")
def transpose(c, x, a, d):
    order = list(range(tensor(x).rank))
    order[a], order[d] = order[d], order[a]
    return c.b.permuted(x, order)


@rule("t", "numpy_T", "mT", "adjoint")
def transposed(c, x):
    if tensor(x).rank < 2:
        return x
    if x.rank != 2:
        raise Unsupported("a transposed tensor of more than two dimensions")
    return c.b.permuted(x, [1, 0])


@rule("expand", "expand_as", "broadcast_to")
def expand(c, x, *sizes, **_):
    like = sizes[0].dims if sizes and isinstance(sizes[0], Value) else []
    return expanded(c.b, tensor(x), c.shapes, like)


def expanded(b, x, shapes, known):
    dims = []
    for k in range(len(shapes[0])):
        at = k - (len(shapes[0]) - x.rank)
        dim = express([s[k] for s in shapes], ([x.dims[at]] if at >= 0 else []) + list(known),
                      b.cases)  # fmt: skip
        if dim is None:
            raise Unsupported("a size that is not said by others")
        dims.append(dim)
    return x if dims == x.dims else b.view("expand", x, dims)


@rule("broadcast_tensors")
def broadcast_tensors(c, tensors):
    dims = broadcast([t.dims for t in tensors])
    return [t if t.dims == dims else c.b.view("expand", t, dims) for t in tensors]


@rule("flip")
def flip(c, x, axes, *_):
    axes = tuple(sorted(a % x.rank for a in axes))
    if x.kind == "view" and x.how == "flip" and x.axes == axes:
        return x.operands[0]
    return c.b.view("flip", x, x.dims, axes=axes)


def sliced(b, x, axis, start, stop, step=1):
    """A part of one dimension. Numbers may be negative, as in Python."""
    axis %= x.rank
    if step not in (1, None):
        raise Unsupported("a slice with steps")
    ranges = [slice(start, stop).indices(n)[:2] for n in x.dims[axis].values]
    starts = {r[0] for r in ranges}
    sizes = [max(r[1] - r[0], 0) for r in ranges]
    if len(starts) > 1:
        raise Unsupported("a slice that begins where sizes say")
    size = express(sizes, [x.dims[axis]], b.cases)
    if size is None:
        raise Unsupported("a size that is not said by others")
    first = starts.pop()
    if first == 0 and size == x.dims[axis]:
        return x
    dims = list(x.dims)
    dims[axis] = size
    return b.view("slice", x, dims, axis=axis, first=first)


@rule("getitem")
def getitem(c, x, index):
    if isinstance(x, (list, tuple)):
        return x[index]
    indices = index if isinstance(index, list) else [index]
    axis = 0
    for one in indices:
        if isinstance(one, slice):
            stop = one.stop
            if isinstance(stop, Dim):
                if stop != x.dims[axis]:
                    raise Unsupported("a slice that ends where sizes say")
                stop = None
            x = sliced(c.b, x, axis, one.start, stop, one.step)
            axis += 1
        elif isinstance(one, int) and not isinstance(one, bool):
            x = selected(c.b, x, axis, one)
        else:
            raise Unsupported("an index that is no number")
    return x


def selected(b, x, axis, index):
    axis %= x.rank
    length = x.dims[axis].constant
    if index < 0 and length is None:
        raise Unsupported("an index from the end")
    first = index % length if length is not None else index
    part = list(x.dims)
    part[axis] = b.one()
    return b.dropped(b.view("slice", x, part, axis=axis, first=first), [axis])


@rule("select")
def select(c, x, axis, index):
    return selected(c.b, tensor(x), axis, index)


@rule("narrow")
def narrow(c, x, axis, start, length):
    return sliced(c.b, tensor(x), axis, number(start), start + length)


@rule("split", "split_with_sizes")
def split(c, x, size, axis=0):
    total = tensor(x).dims[axis % x.rank].constant
    if total is None:
        raise Unsupported("parts whose number varies")
    sizes = size if isinstance(size, list) else [size] * (-(-total // size))
    parts, start = [], 0
    for one in sizes:
        parts.append(sliced(c.b, x, axis, start, min(start + one, total)))
        start += one
    return parts


@rule("chunk")
def chunk(c, x, chunks, axis=0):
    total = tensor(x).dims[axis % x.rank].constant
    if total is None:
        raise Unsupported("parts whose number varies")
    return split(c, x, -(-total // chunks), axis)
