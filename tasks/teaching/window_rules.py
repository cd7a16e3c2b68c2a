"""Pooling: reductions over windows that move over the last dimensions."""

from dims import window_size
from reduction_rules import averaged
from rules import RULES, computed_in_float, number, numbers, tensor
from values import Unsupported, Value


def window(c, how, x, rank, kernel, stride, padding, dilation, counts_padding=True):
    computed_in_float(tensor(x))
    kernel = numbers(kernel, rank)
    stride = numbers(stride, rank) if stride else kernel
    padding, dilation = numbers(padding, rank), numbers(dilation, rank)
    dims = list(x.dims[: x.rank - rank])
    for k in range(rank):
        facts = (kernel[k], stride[k], padding[k], dilation[k])
        dims.append(c.derived(window_size(x.dims[k - rank], *facts)))
    least, most = x.least, x.most
    if how == "mean" and counts_padding and any(padding):
        least, most = min(least, 0), max(most, 0)
    facts = (tuple(kernel), tuple(stride), tuple(padding), tuple(dilation))
    key = ("window", how, id(x), facts, counts_padding)
    return c.b._once(key, lambda: Value(
        "window", dims, x.dtype, [x], how=how, kernel=facts[0], stride=facts[1], padding=facts[2],
        dilation=facts[3], counts_padding=counts_padding, range=(least, most)))  # fmt: skip


def max_pool(rank):
    def of(c, x, kernel, stride=None, padding=0, dilation=1, ceil_mode=False):
        if ceil_mode:
            raise Unsupported("pooling that rounds up")
        return window(c, "max", x, rank, kernel, stride, padding, dilation)

    return of


def avg_pool(rank):
    def of(c, x, kernel, stride=None, padding=0, ceil_mode=False, counts=True, divisor=None):
        if ceil_mode or divisor is not None:
            raise Unsupported("pooling of another kind")
        return window(c, "mean", x, rank, kernel, stride, padding, 1, bool(counts))

    return of


def adaptive_avg_pool(rank):
    def of(c, x, sizes):
        sizes = numbers(sizes, rank)
        last = computed_in_float(tensor(x)).dims[x.rank - rank :]
        if all(s == 1 for s in sizes):
            return averaged(c, x, list(range(x.rank - rank, x.rank)), True)
        if any(d.constant is None or d.constant % number(s) for d, s in zip(last, sizes)):
            raise Unsupported("windows of more than one size")
        kernel = [d.constant // s for d, s in zip(last, sizes)]
        return window(c, "mean", x, rank, kernel, kernel, 0, 1)

    return of


for d in (1, 2, 3):
    RULES[f"max_pool{d}d"] = max_pool(d)
    RULES[f"avg_pool{d}d"] = avg_pool(d)
    RULES[f"adaptive_avg_pool{d}d"] = adaptive_avg_pool(d)
