"""Rules for signals, images and volumes, whose second dimension has channels."""

import math

from program import scaled

# The share of windows whose widths differ between dimensions.
UNEQUAL_SHARE = 0.25


def _widths(p, choices, n):
    """Returns the width of a window along each of n dimensions."""
    if n > 1 and p.random.random() < UNEQUAL_SHARE:
        return [p.random.choice(choices) for _ in range(n)]
    return [p.random.choice(choices)] * n


def _window(p, v, widths, strides, paddings, dilations):
    """Returns the sizes that a window leaves of the last dimensions, or None."""
    sides = []
    for size, w, s, pad, d in zip(v.shape[2:], widths, strides, paddings, dilations):
        reach = d * (w - 1) + 1
        sides.append(p.derive(size, lambda n, r=reach, s=s, pad=pad: (n + 2 * pad - r) // s + 1))
    return None if None in sides else sides


def _call(operator, operands, options, defaults):
    """Returns the text of a call, without the last options that have their defaults."""
    while options and options[-1] == defaults[len(options) - 1]:
        options.pop()
    while not options and operands[-1] == "None":
        operands.pop()
    return f"torch.{operator}({', '.join([*operands, *map(str, options)])})"


def _bias(p, out):
    return p.parameter((out,), "b").name if p.random.random() < 0.75 else "None"


def convolution(p, v):
    """A convolution over the last one, two or three dimensions."""
    n = v.rank - 2
    if n not in (1, 2, 3) or not isinstance(v.shape[1], int):
        return None
    channels, groups = v.shape[1], 1
    out = p.random.choice((16, 32, 64))
    if p.random.random() < 0.25:
        groups = p.random.choice([g for g in (2, 4, channels) if channels % g == 0])
        out = channels if groups == channels else out
    widths = _widths(p, (1, 3, 3) if n == 3 else (1, 3, 3, 5), n)
    strides, dilations, sides = [1] * n, [1] * n, v.shape[2:]
    paddings = [w // 2 for w in widths]
    if p.random.random() < 0.65:
        strides = [p.random.choice((1, 1, 1, 2, 3))] * n
        paddings = [p.random.choice((0, 0, w // 2)) for w in widths]
        dilations = _widths(p, (1, 1, 1, 1, 2, 3), n)
        sides = _window(p, v, widths, strides, paddings, dilations)
        if sides is None:
            return None
    fan = channels // groups * math.prod(widths)
    weight = p.parameter((out, channels // groups, *widths), "w", scaled(fan))
    options = [strides, paddings, dilations, groups]
    defaults = [[1] * n, [0] * n, [1] * n, None if p.random.random() < 0.2 else 1]
    text = _call(f"conv{n}d", [v.name, weight.name, _bias(p, out)], options, defaults)
    words = f"{'grouped ' if groups > 1 else ''}convolution of width {widths[0]}"
    return p.let(text, (v.shape[0], out, *sides), words)


def transposed_convolution(p, v):
    n = v.rank - 2
    if n not in (1, 2, 3) or not isinstance(v.shape[1], int):
        return None
    channels, groups = v.shape[1], 1
    out = p.random.choice((8, 16, 32, 64))
    if p.random.random() < 0.1 and channels % 4 == 0:
        groups = 4
    widths = _widths(p, (2, 3, 3, 3, 4, 5) if n < 3 else (2, 3, 3, 3, 4), n)
    stride = p.random.choice((1, 2, 2, 3))
    paddings = [p.random.choice((0, 1)) if w > 2 else 0 for w in widths]
    more = 1 if stride > 1 and p.random.random() < 0.3 else 0
    dilation = p.random.choice((1,) * 8 + (2,))
    sides = []
    for size, w, pad in zip(v.shape[2:], widths, paddings):
        grown = dilation * (w - 1) + 1 + more - 2 * pad
        sides.append(p.derive(size, lambda m, g=grown: (m - 1) * stride + g))
    if None in sides:
        return None
    fan = channels // groups * math.prod(widths)
    weight = p.parameter((channels, out // groups, *widths), "w", scaled(fan))
    options = [[stride] * n, paddings, [more] * n, groups, [dilation] * n]
    defaults = [[1] * n, [0] * n, [0] * n, 1, [1] * n]
    text = _call(f"conv_transpose{n}d", [v.name, weight.name, _bias(p, out)], options, defaults)
    return p.let(text, (v.shape[0], out, *sides), f"transposed convolution of width {widths[0]}")


def channel_bias(p, v):
    """Adds or multiplies a number for each channel."""
    if v.rank < 3 or not isinstance(v.shape[1], int):
        return None
    number = p.parameter((v.shape[1], *[1] * (v.rank - 2)), "c")
    sign, words = p.random.choice((("+", "bias"), ("*", "factor")))
    return p.let(f"{v.name} {sign} {number.name}", v.shape, f"{words} of each channel")


def channel_norm(p, v):
    """Normalizes over each instance's channel, over groups of channels, or by known statistics."""
    if v.rank < 2 or not isinstance(v.shape[1], int):
        return None
    channels = (v.shape[1],)
    kind = p.random.random()
    if kind < 0.2 and v.rank > 2:
        text = f"torch.instance_norm({v.name}, None, None, None, None, True, 0.1, 1e-05, True)"
        return p.let(text, v.shape, "norm of each channel")
    groups = p.random.choice([g for g in (1, 4, 8, 16, v.shape[1]) if v.shape[1] % g == 0])
    weight, bias = p.parameter(channels, "g"), p.parameter(channels, "b")
    if kind < 0.5 or (v.rank == 2 and groups == v.shape[1]):
        mean = p.parameter(channels, "r")
        variance = p.parameter(channels, "v", ("uniform", 0.5, 1.5))
        text = (
            f"torch.batch_norm({v.name}, {weight.name}, {bias.name}, {mean.name}, "
            f"{variance.name}, False, 0.1, 1e-05, True)"
        )
        return p.let(text, v.shape, "batch norm")
    text = f"torch.group_norm({v.name}, {groups}, {weight.name}, {bias.name}"
    text += ", 1e-5)" if p.random.random() < 0.3 else ")"
    return p.let(text, v.shape, f"norm over {groups} groups of channels")


def pooling(p, v):
    """The largest number or the mean of windows, with or without overlap."""
    n = v.rank - 2
    if n not in (1, 2, 3):
        return None
    name = p.random.choice(("max", "avg"))
    words = "maximum" if name == "max" else "mean"
    width = p.random.choice((2, 2, 3, 4, 5) if n < 3 else (2, 2, 3))
    kind = p.random.random()
    stride, padding, dilation = width, 0, 1
    if kind < 0.3:
        stride, padding = 1, width // 2
    elif kind < 0.6:
        stride, padding = p.random.choice((1, 2, 2, 3)), p.random.choice((0, 1))
        dilation = p.random.choice((1, 1, 2, 3)) if name == "max" else 1
    widths, every = [width] * n, [[stride] * n, [padding] * n, [dilation] * n]
    sides = _window(p, v, widths, *every)
    if sides is None:
        return None
    options = [widths, *every] if name == "max" else [widths, *every[:2]]
    defaults = [None, None, [0] * n, [1] * n]
    text = _call(f"{name}_pool{n}d", [v.name], options, defaults)
    return p.let(text, (*v.shape[:2], *sides), f"{words} of windows of {width}")


def global_mean(p, v):
    if v.rank < 3 or not isinstance(v.shape[1], int):
        return None
    dims, n = list(range(2, v.rank)), v.rank - 2
    if p.random.random() < 0.3:
        text, ones = f"torch.adaptive_avg_pool{n}d({v.name}, {[1] * n})", [1] * n
        if p.random.random() < 0.4:
            text, ones = text + ".squeeze(-1)" * n, []
        return p.let(text, (*v.shape[:2], *ones), "mean of each channel")
    name, words = p.random.choice((("mean", "mean"), ("mean", "mean"), ("amax", "maximum")))
    if p.random.random() < 0.5:
        text = f"torch.{name}({v.name}, dim={dims}, keepdim=True)"
        return p.let(text, (*v.shape[:2], *[1] * n), f"{words} of each channel")
    return p.let(f"torch.{name}({v.name}, dim={dims})", v.shape[:2], f"{words} of each channel")
