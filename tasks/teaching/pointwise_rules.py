"""Element-wise operators of ATen, each as a line of C.

A row holds the C, with {0}, {1}, ... for the operands; values for operands that a call leaves out,
and a shorter C for these values; the same on numbers, to fold constants; and the range of the
result, given those of the operands.
"""

import math

import torch
from values import Unsupported, Value

INFINITY = float("inf")
SQRT_HALF = "0.70710678118654752f"
SQRT_2_OVER_PI = "0.79788456080286536f"


class Row:
    def __init__(self, text, defaults=(), plain="", fold=None, range=None, is_condition=False):
        self.text = text
        self.defaults = defaults
        self.plain = plain  # of the first operand, where the others have their defaults
        self.fold = fold
        self.range = range
        self.is_condition = is_condition


def sigmoid(x):
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def clamped(x, lo, hi):
    return (min(max(x[0], lo[1]), hi[1]), min(max(x[1], lo[0]), hi[1]))


def between(lo, hi):
    return lambda *_: (lo, hi)


def rising(fold):
    """The range of a function that never falls."""

    def of(x, *_):
        try:
            return (fold(x[0]), fold(x[1]))
        except (OverflowError, ValueError):
            return (-INFINITY, INFINITY)

    return of


def gelu(x):
    return x / 2 * (1 + math.erf(x / math.sqrt(2)))


ROWS = {
    "add": Row("({0} + {1})", fold=lambda a, b: a + b),
    "sub": Row("({0} - {1})", fold=lambda a, b: a - b),
    "rsub": Row("({1} - {0})", fold=lambda a, b: b - a),
    "mul": Row("({0} * {1})", fold=lambda a, b: a * b),
    "div": Row("({0} / {1})", fold=lambda a, b: a / b),
    "neg": Row("(-{0})", fold=lambda a: -a),
    "abs": Row("fabsf({0})", fold=abs, range=between(0, INFINITY)),
    "square": Row("({0} * {0})", fold=lambda a: a * a, range=between(0, INFINITY)),
    "sqrt": Row("sqrtf({0})", fold=math.sqrt, range=between(0, INFINITY)),
    "rsqrt": Row("rsqrtf({0})", fold=lambda a: 1 / math.sqrt(a), range=between(0, INFINITY)),
    "reciprocal": Row("(1.0f / {0})", fold=lambda a: 1 / a),
    "exp": Row("expf({0})", fold=math.exp, range=between(0, INFINITY)),
    "exp2": Row("exp2f({0})", range=between(0, INFINITY)),
    "expm1": Row("expm1f({0})", fold=math.expm1, range=between(-1, INFINITY)),
    "log": Row("logf({0})", fold=math.log),
    "log2": Row("log2f({0})", fold=math.log2),
    "log10": Row("log10f({0})", fold=math.log10),
    "log1p": Row("log1pf({0})", fold=math.log1p),
    "sin": Row("sinf({0})", fold=math.sin, range=between(-1, 1)),
    "cos": Row("cosf({0})", fold=math.cos, range=between(-1, 1)),
    "tan": Row("tanf({0})", fold=math.tan),
    "atan": Row("atanf({0})", fold=math.atan),
    "sinh": Row("sinhf({0})", fold=math.sinh),
    "cosh": Row("coshf({0})", fold=math.cosh),
    "erf": Row("erff({0})", fold=math.erf, range=between(-1, 1)),
    "floor": Row("floorf({0})"),
    "ceil": Row("ceilf({0})"),
    "trunc": Row("truncf({0})"),
    "sign": Row("(({0} > 0.0f) - ({0} < 0.0f))", range=between(-1, 1)),
    "sigmoid": Row("(1.0f / (1.0f + expf(-{0})))", fold=sigmoid, range=between(0, 1)),
    "tanh": Row("tanhf({0})", fold=math.tanh, range=rising(math.tanh)),
    "relu": Row("({0} < 0.0f ? 0.0f : {0})", fold=lambda a: max(a, 0.0),
                range=rising(lambda a: max(a, 0.0))),
    "relu6": Row("({0} < 0.0f ? 0.0f : {0} > 6.0f ? 6.0f : {0})", range=between(0, 6)),
    "silu": Row("({0} / (1.0f + expf(-{0})))", fold=lambda a: a * sigmoid(a)),
    "mish": Row("({0} * tanhf({0} > 20.0f ? {0} : log1pf(expf({0}))))"),
    "softsign": Row("({0} / (1.0f + fabsf({0})))", range=between(-1, 1)),
    "tanhshrink": Row("({0} - tanhf({0}))"),
    "log_sigmoid": Row("(({0} < 0.0f ? {0} : 0.0f) - log1pf(expf(-fabsf({0}))))"),
    "softplus": Row("({0} * {1} > {2} ? {0} : log1pf(expf({0} * {1})) / {1})", (1.0, 20.0),
                    "({0} > 20.0f ? {0} : log1pf(expf({0})))", range=between(0, INFINITY)),
    "elu": Row("({0} > 0.0f ? {0} * {2} : expm1f({0} * {3}) * {1} * {2})", (1.0, 1.0, 1.0),
               "({0} > 0.0f ? {0} : expm1f({0}))"),
    "celu": Row("({0} > 0.0f ? {0} : {1} * expm1f({0} / {1}))", (1.0,),
                "({0} > 0.0f ? {0} : expm1f({0}))"),
    "selu": Row("1.0507009873554805f * ({0} > 0.0f ? {0} : 1.6732632423543772f * expm1f({0}))"),
    "leaky_relu": Row("({0} > 0.0f ? {0} : {0} * {1})", (0.01,)),
    "prelu": Row("({0} > 0.0f ? {0} : {0} * {1})"),
    "threshold": Row("({0} <= {1} ? {2} : {0})"),
    "hardtanh": Row("({0} < {1} ? {1} : {0} > {2} ? {2} : {0})", (-1.0, 1.0), range=clamped,
                    fold=lambda a, lo, hi: min(max(a, lo), hi)),
    "hardsigmoid": Row("({0} < -3.0f ? 0.0f : {0} > 3.0f ? 1.0f : ({0} + 3.0f) / 6.0f)",
                       range=between(0, 1)),
    "hardswish": Row("({0} * ({0} < -3.0f ? 0.0f : {0} > 3.0f ? 6.0f : {0} + 3.0f) / 6.0f)"),
    "hardshrink": Row("({0} >= -{1} && {0} <= {1} ? 0.0f : {0})", (0.5,)),
    "softshrink": Row("({0} > {1} ? {0} - {1} : {0} < -{1} ? {0} + {1} : 0.0f)", (0.5,)),
    "clamp_min": Row("({0} < {1} ? {1} : {0})", fold=max,
                     range=lambda x, lo: (max(x[0], lo[0]), max(x[1], lo[1]))),
    "clamp_max": Row("({0} > {1} ? {1} : {0})", fold=min,
                     range=lambda x, hi: (min(x[0], hi[0]), min(x[1], hi[1]))),
    "maximum": Row("({0} < {1} ? {1} : {0})", fold=max,
                   range=lambda x, y: (max(x[0], y[0]), max(x[1], y[1]))),
    "minimum": Row("({0} > {1} ? {1} : {0})", fold=min,
                   range=lambda x, y: (min(x[0], y[0]), min(x[1], y[1]))),
    "pow": Row("powf({0}, {1})", fold=lambda a, b: a**b),
    "atan2": Row("atan2f({0}, {1})"),
    "fmod": Row("fmodf({0}, {1})"),
    # As PyTorch computes it: a - b * floor(a / b) is another number where the quotient rounds up.
    "remainder": Row(
        "(fmodf({0}, {1}) != 0.0f && ({1} < 0.0f) != (fmodf({0}, {1}) < 0.0f)"
        " ? fmodf({0}, {1}) + {1} : fmodf({0}, {1}))"
    ),
    "lerp": Row("({0} + {2} * ({1} - {0}))"),
    "where": Row("({0} ? {1} : {2})"),
    "masked_fill": Row("({1} ? {2} : {0})"),
    "eq": Row("({0} == {1})", is_condition=True),
    "ne": Row("({0} != {1})", is_condition=True),
    "lt": Row("({0} < {1})", is_condition=True),
    "le": Row("({0} <= {1})", is_condition=True),
    "gt": Row("({0} > {1})", is_condition=True),
    "ge": Row("({0} >= {1})", is_condition=True),
    "logical_not": Row("(!{0})", is_condition=True),
    "logical_and": Row("({0} && {1})", is_condition=True),
    "logical_or": Row("({0} || {1})", is_condition=True),
    "gelu": Row(f"(0.5f * {{0}} * (1.0f + erff({{0}} * {SQRT_HALF})))", fold=gelu),
    "gelu_tanh": Row(f"(0.5f * {{0}} * (1.0f + tanhf({SQRT_2_OVER_PI} * ({{0}} + 0.044715f * "
                     "{0} * {0} * {0}))))"),
}  # fmt: skip

SAME = {
    "subtract": "sub", "multiply": "mul", "divide": "div", "true_divide": "div", "negative": "neg",
    "absolute": "abs", "greater": "gt", "less": "lt", "greater_equal": "ge", "less_equal": "le",
    "not_equal": "ne", "logsigmoid": "log_sigmoid", "clip": "clamp", "__and__": "bitwise_and",
}  # fmt: skip


# Rows that are exact on integers as well.
OF_INTEGERS = {
    "add", "sub", "rsub", "mul", "neg", "clamp_min", "clamp_max", "maximum", "minimum", "where",
    "masked_fill", "eq", "ne", "lt", "le", "gt", "ge", "logical_not", "logical_and", "logical_or",
}  # fmt: skip

# Right operands that leave the left one as it is.
NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "div": 1}
COMMUTATIVE = ("add", "mul")


def unchanged(b, name, operands):
    """Returns the operand that a row leaves as it is, such as the x of x * 1, or None."""
    if name not in NEUTRAL:
        return None
    pairs = [operands, operands[::-1]] if name in COMMUTATIVE else [operands]
    for x, other in pairs:
        if not isinstance(x, Value) or not x.dtype.is_floating_point:
            continue
        if isinstance(other, Value) and (other.kind != "constant" or other.dims):
            continue
        number = other.number if isinstance(other, Value) else other
        if number == NEUTRAL[name] and b.promoted([x, b.as_value(other)]) == x.dtype:
            return x
    return None


def is_negative(operand):
    return isinstance(operand, (int, float)) and operand < 0


def apply_row(b, name, *operands):
    """Returns the row's value. Operands are values and numbers."""
    same = unchanged(b, name, operands)
    if same is not None:
        return same
    if name == "add" and is_negative(operands[1]):
        name, operands = "sub", (operands[0], -operands[1])
    row = ROWS[name]
    tensors = [o for o in operands if isinstance(o, Value) and o.kind != "constant"]
    if tensors and name not in OF_INTEGERS and not any(o.dtype.is_floating_point for o in tensors):
        raise Unsupported(f"{name} of integers")
    operands = [*operands, *row.defaults[len(operands) - 1 :]]
    text = row.text
    if row.plain and tuple(operands[1:]) == row.defaults:
        text, operands = row.plain, operands[:1]
    values = [b.as_value(o) for o in operands]
    known = None
    if row.range is not None:
        known = row.range(*[(v.least, v.most) for v in values])
    dtype = torch.bool if row.is_condition else None
    if name in ("where", "masked_fill"):
        dtype = b.promoted(values[1:] if name == "where" else [values[0]])
    return b.pointwise(text, *values, dtype=dtype, fold=row.fold, range=known)
