"""Reductions, normalizations and losses, in terms of element-wise operations and reductions."""

import math

import torch
from calls import folded_batch_norm, is_parameter, prepared, summed_product
from pointwise_rules import apply_row
from rules import RULES, axes_of, by_channel, computed_in_float, number, rule, tensor
from values import Unsupported, Value


def reduced(c, how, x, dim, keepdim=False, dtype=None):
    return c.b.reduce(how, tensor(x), axes_of(x, dim), keepdim, dtype)


def total_of(c, x, axes, keep):
    """A sum over axes. Linear operations are moved out of it."""
    if x.kind == "pointwise" and x.text in ("({0} * {1})", "({0} / {1})"):
        inner, factor = x.operands
        if factor.kind == "constant" and not factor.dims and inner.dims == x.dims:
            return c.b.pointwise(x.text, total_of(c, inner, axes, keep), factor)
    linear = summed_product(c, x, axes, keep)
    return linear if linear is not None else c.b.reduce("sum", x, axes, keep)


def averaged(c, x, axes=None, keep=False):
    """The mean over the axes; without any, over all."""
    axes = axes_of(x, axes)
    total = total_of(c, x, axes, keep)
    extent = c.b.extent(x, axes)
    if extent.kind == "constant":
        return apply_row(c.b, "mul", total, 1.0 / extent.number)
    return apply_row(c.b, "div", total, extent)


@rule("sum")
def sum_(c, x, dim=None, keepdim=False, dtype=None):
    return total_of(c, computed_in_float(tensor(x)), axes_of(x, dim), keepdim)


@rule("mean")
def mean(c, x, dim=None, keepdim=False, dtype=None):
    return averaged(c, computed_in_float(tensor(x)), axes_of(x, dim), keepdim)


def reduction(how, dtype=None):
    def of(c, x, dim=None, keepdim=False, **_):
        return reduced(c, how, computed_in_float(tensor(x)), dim, keepdim, dtype)

    return of


def extreme(how):
    """torch.max and torch.min: of all, along a dimension with places, or of two tensors."""

    def of(c, x, dim=None, keepdim=False):
        if isinstance(dim, Value):
            return apply_row(c.b, how + "imum", x, dim)
        best = reduction(how)(c, x, dim, keepdim)
        return (
            best if dim is None else [best, reduction("arg" + how, torch.int64)(c, x, dim, keepdim)]
        )

    return of


RULES["prod"] = reduction("prod")
for name in ("max", "min"):
    RULES[name] = extreme(name)
    RULES["a" + name] = reduction(name)
    RULES["arg" + name] = reduction("arg" + name, torch.int64)


def exponentials(c, x, axes):
    """The largest element and the sum of exponentials relative to it, with kept dimensions."""
    if all(x.dims[a].is_one for a in axes):
        return x, c.b.constant(1.0, x.dims)
    both = c.b.reduce("exponentials", x, axes, dtype=torch.float32)
    return c.b.field(both, "largest"), c.b.field(both, "total")


def below(c, x, largest):
    """How far x is below the largest element, which itself must be exactly 0 below.

    The difference is never fused with a product that gives x.
    """
    return c.b.pointwise("__fsub_rn({0}, {1})", x, largest)


@rule("softmax", "_softmax")
def softmax(c, x, dim, *_):
    computed_in_float(tensor(x))
    if x.dims[dim].is_one:
        return c.b.constant(1.0, x.dims, x.dtype)
    largest, total = exponentials(c, x, axes_of(x, dim))
    top = apply_row(c.b, "exp", below(c, x, largest))
    return c.b.pointwise("({0} / {1})", top, total, range=(0, 1))


@rule("log_softmax", "_log_softmax")
def log_softmax(c, x, dim, *_):
    computed_in_float(tensor(x))
    largest, total = exponentials(c, x, axes_of(x, dim))
    return apply_row(c.b, "sub", below(c, x, largest), apply_row(c.b, "log", total))


@rule("logsumexp")
def logsumexp(c, x, dim, keepdim=False):
    axes = axes_of(computed_in_float(tensor(x)), dim)
    if all(x.dims[a].is_one for a in axes):
        return x if keepdim else c.b.dropped(x, axes)
    largest, total = exponentials(c, x, axes)
    whole = apply_row(c.b, "add", largest, apply_row(c.b, "log", total))
    return whole if keepdim else c.b.dropped(whole, axes)


def moments(c, x, axes):
    """Mean and biased variance, with kept dimensions."""
    both = c.b.reduce("moments", x, axes, dtype=torch.float32)
    mean_there = c.b.field(both, "mean")
    squares = c.b.field(both, "squares")
    extent = c.b.extent(x, axes)
    if extent.kind == "constant":
        return mean_there, apply_row(c.b, "mul", squares, 1.0 / extent.number)
    return mean_there, apply_row(c.b, "div", squares, extent)


def normalized(c, x, axes, eps):
    mean_there, variance = moments(c, x, axes)
    scale = apply_row(c.b, "rsqrt", apply_row(c.b, "add", variance, number(eps)))
    return apply_row(c.b, "mul", apply_row(c.b, "sub", x, mean_there), scale)


def scaled(c, x, weight, bias):
    if weight is not None:
        x = apply_row(c.b, "mul", x, weight)
    return x if bias is None else apply_row(c.b, "add", x, bias)


@rule("layer_norm")
def layer_norm(c, x, shape, weight=None, bias=None, eps=1e-5, *_):
    axes = list(range(x.rank - len(shape), x.rank))
    return scaled(c, normalized(c, computed_in_float(x), axes, eps), weight, bias)


@rule("rms_norm")
def rms_norm(c, x, shape, weight=None, eps=None):
    axes = list(range(x.rank - len(shape), x.rank))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    squares = averaged(c, apply_row(c.b, "square", computed_in_float(x)), axes, True)
    scale = apply_row(c.b, "rsqrt", apply_row(c.b, "add", squares, eps))
    return scaled(c, apply_row(c.b, "mul", x, scale), weight, None)


@rule("group_norm")
def group_norm(c, x, groups, weight=None, bias=None, eps=1e-5, *_):
    channels = computed_in_float(x).dims[1].constant
    if channels is None:
        raise Unsupported("groups of a number of channels that varies")
    split = [[s[0], groups, channels // groups, *s[2:]] for s in c.shapes]
    inside = c.b.reshape_to(x, split)
    out = normalized(c, inside, list(range(2, inside.rank)), eps)
    out = c.b.reshape(out, x.dims)
    return scaled(c, out, by_channel(c.b, weight, x.rank), by_channel(c.b, bias, x.rank))


@rule("instance_norm")
def instance_norm(c, x, weight, bias, mean_now, variance_now, use_input_stats, momentum, eps, *_):
    if not use_input_stats:
        raise Unsupported("an instance norm with given moments")
    out = normalized(c, computed_in_float(x), list(range(2, x.rank)), eps)
    return scaled(c, out, by_channel(c.b, weight, x.rank), by_channel(c.b, bias, x.rank))


@rule("batch_norm")
def batch_norm(c, x, weight, bias, mean_then, variance_then, training, momentum, eps, *_):
    computed_in_float(x)
    if training:
        raise Unsupported("a batch norm that trains")
    if c.facts["folds"] and weight is not None and bias is not None:
        folded = folded_batch_norm(c, x, weight, bias, mean_then, variance_then, number(eps))
        if folded is not None:
            return folded
    if all(g is not None and is_parameter(g) for g in (weight, bias, mean_then, variance_then)):
        text = f"{weight.name} * torch.rsqrt({variance_then.name} + {eps!r})"
        scale = prepared(c, text, weight.dims, weight.dtype)
        shift = prepared(c, f"{bias.name} - {mean_then.name} * {text}", bias.dims, bias.dtype)
        return scaled(c, x, by_channel(c.b, scale, x.rank), by_channel(c.b, shift, x.rank))
    scale = apply_row(c.b, "rsqrt", apply_row(c.b, "add", variance_then, eps))
    scale = scale if weight is None else apply_row(c.b, "mul", scale, weight)
    shift = apply_row(c.b, "sub", x, by_channel(c.b, mean_then, x.rank))
    return scaled(c, shift, by_channel(c.b, scale, x.rank), by_channel(c.b, bias, x.rank))


@rule("var")
def var(c, x, dim=None, unbiased=True, keepdim=False, correction=None):
    axes = axes_of(computed_in_float(tensor(x)), dim if not isinstance(dim, bool) else None)
    correction = (1 if unbiased else 0) if correction is None else correction
    squares = c.b.field(c.b.reduce("moments", x, axes, dtype=torch.float32), "squares")
    freedom = apply_row(c.b, "sub", c.b.extent(x, axes), float(correction))
    out = apply_row(c.b, "div", squares, freedom)
    return out if keepdim else c.b.dropped(out, axes)


@rule("std")
def std(c, x, *rest, **more):
    return apply_row(c.b, "sqrt", var(c, x, *rest, **more))


@rule("linalg_vector_norm")
def vector_norm(c, x, order=2, dim=None, keepdim=False, dtype=None):
    computed_in_float(tensor(x))
    if order in (1, 2):
        parts = apply_row(c.b, "abs" if order == 1 else "square", x)
        total = reduced(c, "sum", parts, dim, keepdim)
        return total if order == 1 else apply_row(c.b, "sqrt", total)
    if order == math.inf:
        return reduced(c, "max", apply_row(c.b, "abs", x), dim, keepdim)
    raise Unsupported(f"a norm of order {order}")


@rule("norm")
def norm(c, x, p=2, dim=None, keepdim=False, dtype=None):
    return vector_norm(c, x, 2 if p == "fro" else p, dim, keepdim)


REDUCTIONS = {0: "none", 1: "mean", 2: "sum"}


def finished(c, losses, reduction):
    how = REDUCTIONS.get(reduction)
    if how == "none":
        return losses
    if how == "mean":
        return averaged(c, losses)
    if how == "sum":
        return c.b.reduce("sum", losses, None, keep=False)
    raise Unsupported("how a loss is reduced")


SHORT_HUBER = (
    "(fabsf({0} - {1}) <= 1.0f ? 0.5f * ({0} - {1}) * ({0} - {1}) : fabsf({0} - {1}) - 0.5f)"
)
# The loss of an element x with target y and, as {2}, a number; the number's default, and the loss
# with it.
LOSSES = {
    "mse_loss": ("(({0} - {1}) * ({0} - {1}))", None, ""),
    "l1_loss": ("fabsf({0} - {1})", None, ""),
    "soft_margin_loss": ("log1pf(expf(-{0} * {1}))", None, ""),
    "smooth_l1_loss": ("(fabsf({0} - {1}) < {2} ? 0.5f * ({0} - {1}) * ({0} - {1}) / {2} "
                       ": fabsf({0} - {1}) - 0.5f * {2})", 1.0, SHORT_HUBER),
    "huber_loss": ("(fabsf({0} - {1}) <= {2} ? 0.5f * ({0} - {1}) * ({0} - {1}) "
                   ": {2} * (fabsf({0} - {1}) - 0.5f * {2}))", 1.0, SHORT_HUBER),
    "kl_div": ("({1} > 0.0f ? {1} * (logf({1}) - {0}) : 0.0f)", None, ""),
}  # fmt: skip


def loss(text, default, short):
    def of(c, x, y, how=1, parameter=default):
        if default is None and parameter:
            raise Unsupported("a loss of another kind")
        computed_in_float(x)
        if default is None or parameter == default:
            return finished(c, c.b.pointwise(short or text, x, y), how)
        return finished(c, c.b.pointwise(text, x, y, float(parameter)), how)

    return of


for name, row in LOSSES.items():
    RULES[name] = loss(*row)


@rule("binary_cross_entropy_with_logits")
def logit_loss(c, x, y, weight=None, pos_weight=None, how=1):
    if weight is not None or pos_weight is not None:
        raise Unsupported("a loss with weights")
    text = "((1.0f - {1}) * {0} + log1pf(expf(-fabsf({0}))) + ({0} < 0.0f ? -{0} : 0.0f))"
    return finished(c, c.b.pointwise(text, x, y), how)


@rule("cross_entropy_loss")
def cross_entropy(c, x, y, weight=None, reduction=1, ignore_index=-100, smoothing=0.0):
    if weight is not None or smoothing or y.dtype != torch.int64 or x.rank != 2:
        raise Unsupported("a cross entropy of another kind")
    chosen = c.b.view("gather", x, y.dims, index=y)
    chosen.operands.append(y)
    largest, total = exponentials(c, computed_in_float(x), [1])
    whole = apply_row(c.b, "add", largest, apply_row(c.b, "log", total))
    losses = apply_row(c.b, "sub", c.b.dropped(whole, [1]), chosen)
    return finished(c, losses, reduction)


@rule("cosine_similarity")
def cosine_similarity(c, x, y, dim=1, eps=1e-8):
    axes = axes_of(x, dim)
    products = c.b.reduce("sum", apply_row(c.b, "mul", x, y), axes, False)
    lengths = []
    for side in (x, y):
        squares = c.b.reduce("sum", apply_row(c.b, "square", side), axes, False)
        lengths.append(apply_row(c.b, "clamp_min", apply_row(c.b, "sqrt", squares), eps))
    return apply_row(c.b, "div", products, apply_row(c.b, "mul", *lengths))


@rule("pairwise_distance")
def pairwise_distance(c, x, y, p=2.0, eps=1e-6, keepdim=False):
    if p != 2:
        raise Unsupported("a distance of another order")
    off = apply_row(c.b, "add", apply_row(c.b, "sub", x, y), eps)
    total = c.b.reduce("sum", apply_row(c.b, "square", off), [x.rank - 1], keepdim)
    return apply_row(c.b, "sqrt", total)


@rule("triplet_margin_loss")
def triplet_margin_loss(c, anchor, near, far, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1):
    if swap:
        raise Unsupported("a triplet loss with swaps")
    between = [pairwise_distance(c, anchor, other, p, eps) for other in (near, far)]
    losses = apply_row(c.b, "add", apply_row(c.b, "sub", *between), float(margin))
    return finished(c, apply_row(c.b, "clamp_min", losses, 0.0), reduction)


def scanned(how):
    def of(c, x, dim, dtype=None):
        axis = dim % computed_in_float(tensor(x)).rank
        if x.kind == "view" and x.how == "flip" and x.axes == (axis,):
            whole = scan_of(c.b, how, x.operands[0], axis, True)
            return c.b.view("flip", whole, x.dims, axes=x.axes)
        return scan_of(c.b, how, x, axis, False)

    return of


RULES["cumsum"], RULES["cumprod"] = scanned("sum"), scanned("prod")


def scan_of(b, how, x, axis, is_reverse):
    key = ("scan", how, id(x), axis, is_reverse)
    return b._once(key, lambda: Value("scan", x.dims, x.dtype, [x], how=how, axis=axis,
                                        is_reverse=is_reverse))  # fmt: skip
