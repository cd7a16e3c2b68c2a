"""The `init` of a task's tensor: its text, its draws, and the one that fits given values."""

import math
import re

import torch
from toml_strings import quoted
from torchscript_text import Unprintable, runnable

# Draws of the other sign that a fitted distribution has at least if none are seen by rule.
MIN_OF_OTHER_SIGN = 4
# Draws beyond the largest and smallest values that a fitted distribution has at least if it is cut
# off there.
MIN_BEYOND = 8


class Init:
    """The `init` of a task's tensor: the counterpart of `initializer` in tasks/task_file.hpp.

    of: normal, uniform, integers, constant, permutation or coin.
    a, b: mean and standard deviation, bounds (`b` excluded), or the value; a bound of integers may
    be a size's name.
    expr: a TorchScript expression over the drawn x, or empty.
    """

    def __init__(self, of, a=0.0, b=1.0, expr=""):
        self.of, self.a, self.b, self.expr = of, a, b, expr

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

    def draw(self, shape, dtype, sizes, generator):
        """Draws a tensor as the judge does.

        sizes: the task's sizes by name. Raises ValueError if the expression changes the shape.
        """
        x = self.raw(shape, sizes, generator)
        if self.expr:
            unit = torch.jit.CompilationUnit(
                runnable(f"def f(x: Tensor) -> Tensor:\n    return {self.expr}\n")
            )
            x = unit.f(x)
            if tuple(x.shape) != tuple(shape):
                raise ValueError("the expression changes the shape")
        return x.to(dtype).contiguous()


def is_drawable(init, tensor, generator):
    """Returns True if an Init can draw a tensor of this shape.

    Extents above 64 are tried as 64, unless the expression has numbers that may be sizes.
    """
    if not init.expr:
        return True
    try:
        # Whole numbers of two digits or more may be sizes; 0.001 and float32 are none.
        names_sizes = re.search(r"(?<![\w.])\d\d+(?![\w.])", init.expr) and "size" not in init.expr
        small = [extent if names_sizes else min(extent, 64) for extent in tensor.shape]
        init.draw(small, tensor.dtype, {}, generator)
        return True
    except Exception:
        return False


def plain(value):
    """Returns a number, or a size's name, as it is written in a task file's `init`."""
    if isinstance(value, (str, int)):
        return str(value)
    return (
        repr(int(value))
        if float(value).is_integer() and abs(value) < 2**53
        else f"{float(value):.9g}"
    )


def measured_init(tensor):
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
        raise Unprintable("it draws values that are not finite in a way that cannot be followed")
    if bool(((values == low) | (values == high)).all()):
        share = (values == high).double().mean().item()
        coin = f"x < {share:.3g}"
        if (low, high) != (0, 1):
            coin = f"({coin}).to(torch.float32) * {high - low:.9g} + {low:.9g}"
        return Init("uniform", expr=coin)
    if bool((values == values.round()).all()):
        return whole_numbers(values, int(low), int(high))
    mean, spread = values.mean().item(), values.std(correction=0).item()
    # The kurtosis of a uniform distribution is 1.8, that of a normal one 3.
    kurtosis = ((values - mean) ** 4).mean().item() / max(spread**4, 1e-300)

    def beyond(limit):
        """Returns how many draws of the normal distribution lie on the other side of a limit."""
        far = abs(limit - mean) / max(spread, 1e-300)
        return values.numel() * 0.5 * math.erfc(far / math.sqrt(2))

    def rounded(value):
        return float(f"{value:.{significant_digits(value, spread)}g}")

    if kurtosis < 2.1 and values.numel() >= 64:
        return Init("uniform", rounded(low), rounded(high))
    fitted = Init("normal", rounded(mean), rounded(spread))
    # Numbers of one sign keep it if draws of the distribution would not.
    if beyond(0.0) >= MIN_OF_OTHER_SIGN and (low >= 0 or high <= 0):
        fitted.expr = "torch.abs(x)" if low >= 0 else "-torch.abs(x)"
    # Bounds that draws of the distribution would cross.
    limits = [
        f"{name}={rounded(limit)!r}"
        for name, limit in (("min", low), ("max", high))
        if beyond(limit) >= MIN_BEYOND and not (fitted.expr and abs(limit) < 0.25 * spread)
    ]
    if limits:
        inner = f"({fitted.expr})" if fitted.expr.startswith("-") else fitted.expr or "x"
        fitted.expr = f"{inner}.clamp({', '.join(limits)})"
    return fitted


def significant_digits(value, spread):
    """Returns how many digits say a value to about a thousandth of a spread."""
    ratio = abs(value) / max(spread, 1e-300)
    return min(9, 4 + max(0, math.ceil(math.log10(max(ratio, 1.0)))))


def whole_numbers(values, low, high):
    """Returns the Init of whole numbers in floating point that are spread evenly. Raises
    Unprintable if they are not."""
    levels, counts = values.unique(return_counts=True)
    kinds = high - low + 1
    if len(levels) == kinds and values.numel() >= 20 * kinds:
        expected = values.numel() / kinds
        if float((counts - expected).abs().max()) < 5 * expected**0.5 + 0.1 * expected:
            return Init("integers", low, high + 1)
    raise Unprintable("its values are whole numbers, and how it draws them cannot be followed")
