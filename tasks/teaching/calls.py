"""Calls of ATen that a host program makes, and values computed once from the parameters."""

import torch
from dims import Dim, transposed_window_size, window_size
from rules import by_channel, numbers, rule, tensor
from values import Unsupported, Value


class AtenCall:
    """operator with operands, as in TorchScript. Operands are values, numbers, sizes and lists."""

    def __init__(self, name, operator, operands, keywords=None, is_method=False):
        self.name = name
        self.operator = operator
        self.operands = operands
        self.keywords = keywords or {}
        self.is_method = is_method

    def values(self):
        return list(_values_in(self.operands)) + list(_values_in(list(self.keywords.values())))


def _values_in(operand):
    if isinstance(operand, Value):
        yield operand
    elif isinstance(operand, (list, tuple)):
        for o in operand:
            yield from _values_in(o)
    elif isinstance(operand, slice):
        yield from _values_in([operand.start, operand.stop, operand.step])


PRODUCTS = ("linear", "matmul", "mm", "bmm", "addmm", "baddbmm")


def result_of(call, shapes, dtype, is_contiguous=True, part=None, sizes=()):
    """The buffer that a call returns. Its sizes are said by the call's operands where they can.

    sizes: dimensions that are known besides.
    """
    # A convolution of a permuted tensor may keep its layout; what shapes say of that is a guess.
    is_permuted = any(v.kind == "view" and v.how == "permute" for v in call.values())
    is_contiguous = is_contiguous and (call.operator in PRODUCTS or not is_permuted)
    known = {d.values: d for d in sizes}
    known |= {d.values: d for v in call.values() for d in v.dims if d.constant is None}
    text = call.name if part is None else f"{call.name}[{part}]"
    dims = []
    for k in range(len(shapes[0])):
        own = Dim([s[k] for s in shapes], f"{text}.size({k})")
        dims.append(known.get(own.values, own))
    return Value("buffer", dims, dtype, call.values(), name=text, call=call, part=part,
                 is_contiguous=is_contiguous)  # fmt: skip


def is_call_of(x, *operators):
    return x.kind == "buffer" and x.facts.get("call") is not None and (
        x.call.operator in operators and x.part is None)  # fmt: skip


def is_parameter(x):
    return isinstance(x, Value) and x.kind == "buffer" and x.facts.get("is_parameter", False)


def prepared(c, text, dims, dtype):
    """A tensor that `prepare` computes. text: TorchScript over names of parameters."""
    known = c.facts["prepared"]
    if text not in known:
        name = f"ready_{len(known)}"
        known[text] = Value("buffer", dims, dtype, name=name, prepared=text, is_contiguous=True)
    return known[text]


def matrix_of(x):
    """The parameter that a right operand of a product is, and whether it is transposed."""
    if is_parameter(x) and x.rank == 2:
        return x, False
    if x.kind == "view" and x.how == "permute" and x.rank == 2 and is_parameter(x.operands[0]):
        return x.operands[0], True
    return None, False


def summed_product(c, x, axes, keep):
    """The sum over the outputs of a linear map is a product with the sums of its matrix."""
    if list(axes) != [x.rank - 1] or not is_call_of(x, "linear", "matmul", "mm"):
        return None
    left, right, *bias = x.call.operands
    bias = bias[0] if bias else None
    matrix, is_transposed = matrix_of(right)
    if matrix is None or not (bias is None or is_parameter(bias)):
        return None
    across = 0 if (x.call.operator == "linear" or is_transposed) else 1
    sums = prepared(c, f"{matrix.name}.sum({across})", [matrix.dims[1 - across]], matrix.dtype)
    product = c.b.pointwise("({0} * {1})", left, sums)
    total = c.b.reduce("sum", product, [product.rank - 1], keep)
    if bias is None:
        return total
    return c.b.pointwise("({0} + {1})", total, prepared(c, f"{bias.name}.sum()", [], bias.dtype))


def diagonal_of(x):
    """The vector whose diagonal matrix this is, or None."""
    if is_call_of(x, "diag", "diag_embed") and x.call.operands[0].rank == 1:
        return x.call.operands[0] if len(x.call.operands) == 1 else None
    return None


@rule("matmul", "mm")
def product_with_diagonal(c, x, y):
    """A product with a diagonal matrix scales rows or columns."""
    left, right = diagonal_of(tensor(x)), diagonal_of(tensor(y))
    if left is not None and y.rank == 2:
        return c.b.pointwise("({0} * {1})", c.b.reshape(left, [left.dims[0], c.b.one()]), y)
    if right is not None:
        return c.b.pointwise("({0} * {1})", x, right)
    raise Unsupported("a product of matrices")


CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
TRANSPOSED = ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


@rule(*CONVOLUTIONS, *TRANSPOSED)
def convolution(c, x, weight, bias=None, *rest):
    """ATen adds the bias in a separate kernel; here the kernel that follows does."""
    adds_later = bias is not None and c.facts["device"] == "cuda"
    name, operator = c.facts["name"], c.facts["operator"]
    sizes = convolved_sizes(c, operator in TRANSPOSED, x, weight, *rest)
    x = with_channels_last(c, x)
    call = AtenCall(name, operator, [x, weight, None if adds_later else bias, *rest])
    out = convolved(c, call, sizes)
    if not adds_later:
        return out
    return c.b.pointwise("({0} + {1})", out, by_channel(c.b, bias, out.rank))


FIRST_TO_LAST, LAST_TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def wants_channels_last(c):
    is_image = len(c.shapes[0]) == 4
    return c.facts["channels_last"] and c.facts["device"] == "cuda" and is_image


def with_channels_last(c, x):
    """An image whose channels lie next to each other in memory, if the moves want that.

    cuDNN takes it as it is, and so does the kernel that follows, so nothing is moved in between.
    """
    if not wants_channels_last(c):
        return x
    dense = c.b.permuted(x, FIRST_TO_LAST)
    if dense.kind != "buffer":
        dense = c.b.pointwise("{0}", dense)
    return c.b.permuted(dense, LAST_TO_FIRST)


def has_channels_last(x):
    return x.kind == "view" and x.how == "permute" and x.order == LAST_TO_FIRST


def convolved(c, call, sizes):
    """The result of a convolution, which has the layout of its input."""
    out = result_of(call, c.shapes, c.dtype, sizes=sizes)
    if not (wants_channels_last(c) and has_channels_last(call.operands[0])):
        return out
    dense = c.b.buffer(f"{call.name}.permute({list(FIRST_TO_LAST)})",
                       [out.dims[k] for k in FIRST_TO_LAST], out.dtype, call=call, part=None,
                       is_contiguous=False)  # fmt: skip
    return c.b.permuted(dense, LAST_TO_FIRST)


def convolved_sizes(c, is_transposed, x, weight, stride=1, padding=0, *rest):
    """The sizes of a convolution's result, said by those of its input."""
    rank = x.rank - 2
    if isinstance(padding, str):
        return []
    output_padding, dilation = 0, 1
    if is_transposed:
        output_padding, _, dilation = [*rest, *[0, 1, 1][len(rest) :]]
    elif rest:
        dilation = rest[0]
    every = [numbers(o, rank) for o in (stride, padding, output_padding, dilation)]
    dims = []
    for k in range(rank):
        step, pad, more, apart = (o[k] for o in every)
        side, kernel = x.dims[2 + k], weight.dims[2 + k].constant
        if kernel is None:
            return []
        if is_transposed:
            size = transposed_window_size(side, kernel, step, pad, more, apart)
        else:
            size = window_size(side, kernel, step, pad, apart)
        dims.append(c.derived(size))
    return dims


def folded_batch_norm(c, x, weight, bias, mean_then, variance_then, eps):
    """A convolution with a norm behind it is one with other weights, which `prepare` computes."""
    of_convolution = x
    if x.kind == "pointwise" and x.operands[0].kind in ("buffer", "view"):
        of_convolution = x.operands[0]  # its bias is added later
    has_own_bias = of_convolution is x
    if has_channels_last(of_convolution):
        of_convolution = of_convolution.operands[0]
    if not is_call_of(of_convolution, *CONVOLUTIONS, "linear"):
        return None
    call = of_convolution.call
    if call.name != c.facts["first"] or c.facts["readers"][call.name] != 1:
        return None
    left, matrix, inner_bias, *rest = [*call.operands, *[None][len(call.operands) - 2 :]]
    if not has_own_bias:
        inner_bias = x.operands[1].operands[0]
    givens = [matrix, weight, bias, mean_then, variance_then]
    givens += [] if inner_bias is None else [inner_bias]
    if not all(is_parameter(g) and g.dtype == torch.float32 for g in givens):
        return None
    scale = f"({weight.name} * torch.rsqrt({variance_then.name} + {eps!r}))"
    wide = ", ".join(["-1"] + ["1"] * (matrix.rank - 1))
    inner = "" if inner_bias is None else f" + {inner_bias.name} * {scale}"
    kernel = prepared(c, f"{matrix.name} * {scale}.reshape([{wide}])", matrix.dims, matrix.dtype)
    offset = prepared(c, f"{bias.name} - {mean_then.name} * {scale}{inner}", bias.dims, bias.dtype)
    adds_later = call.operator != "linear" and c.facts["device"] == "cuda"
    operands = [left, kernel, None if adds_later else offset, *rest]
    out = convolved(c, AtenCall(call.name, call.operator, operands), x.dims)
    if not adds_later:
        return out
    return c.b.pointwise("({0} + {1})", out, by_channel(c.b, offset, out.rank))
