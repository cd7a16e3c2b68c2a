"""Rules for signals, images and volumes, whose second dimension has channels."""

import math

from program import scaled


def _window(p, v, width, stride, padding, dilation=1):
    """Returns the sizes that a window leaves of the last dimensions, or None."""
    reach = dilation * (width - 1) + 1
    sides = [p.derive(d, lambda n: (n + 2 * padding - reach) // stride + 1) for d in v.shape[2:]]
    return None if None in sides else sides


def convolution(p, v):
    """A convolution over the last one, two or three dimensions."""
    n = v.rank - 2
    if n not in (1, 2, 3) or not isinstance(v.shape[1], int):
        return None
    channels, groups = v.shape[1], 1
    out = p.random.choice((16, 32, 64))
    if p.random.random() < 0.2:
        out, groups = channels, channels
    width = p.random.choice((1, 3) if n == 3 else (1, 3, 5))
    stride, padding, sides = 1, width // 2, v.shape[2:]
    if p.random.random() < 0.4:
        stride, padding = p.random.choice(((1, 0), (2, width // 2), (2, 0)))
        sides = _window(p, v, width, stride, padding)
        if sides is None:
            return None
    fan = channels // groups * width**n
    weight = p.parameter((out, channels // groups, *[width] * n), "w", scaled(1 / math.sqrt(fan)))
    bias = p.parameter((out,), "b")
    text = f"torch.conv{n}d({v.name}, {weight.name}, {bias.name}"
    if (stride, padding, groups) != (1, 0, 1) or p.random.random() < 0.5:
        text += f", {[stride] * n}, {[padding] * n}, {[1] * n}, {groups}"
    words = f"{'depthwise ' if groups > 1 else ''}convolution of width {width}"
    return p.let(f"{text})", (v.shape[0], out, *sides), words)


def transposed_convolution(p, v):
    n = v.rank - 2
    if n not in (1, 2, 3) or not isinstance(v.shape[1], int):
        return None
    channels, out = v.shape[1], p.random.choice((8, 16, 32))
    width, stride, padding = p.random.choice(((2, 2, 0), (3, 1, 1), (3, 2, 1), (4, 2, 1)))
    sides = [p.derive(d, lambda m: (m - 1) * stride - 2 * padding + width) for d in v.shape[2:]]
    if None in sides:
        return None
    fan = channels * width**n
    weight = p.parameter((channels, out, *[width] * n), "w", scaled(1 / math.sqrt(fan)))
    bias = p.parameter((out,), "b")
    text = (
        f"torch.conv_transpose{n}d({v.name}, {weight.name}, {bias.name}, {[stride] * n}, "
        f"{[padding] * n})"
    )
    return p.let(text, (v.shape[0], out, *sides), f"transposed convolution of width {width}")


def channel_bias(p, v):
    """Adds or multiplies a number for each channel."""
    if v.rank < 3 or not isinstance(v.shape[1], int):
        return None
    number = p.parameter((v.shape[1], *[1] * (v.rank - 2)), "c")
    sign, words = p.random.choice((("+", "bias"), ("*", "factor")))
    return p.let(f"{v.name} {sign} {number.name}", v.shape, f"{words} of each channel")


def channel_norm(p, v):
    """Normalises over each instance's channel, over groups of channels, or by known statistics."""
    if v.rank < 3 or not isinstance(v.shape[1], int):
        return None
    channels = (v.shape[1],)
    kind = p.random.random()
    if kind < 0.2:
        text = f"torch.instance_norm({v.name}, None, None, None, None, True, 0.1, 1e-05, True)"
        return p.let(text, v.shape, "norm of each channel")
    groups = p.random.choice([g for g in (1, 4, 8, v.shape[1]) if v.shape[1] % g == 0])
    weight, bias = p.parameter(channels, "g"), p.parameter(channels, "b")
    if kind < 0.45:
        mean = p.parameter(channels, "r")
        variance = p.parameter(channels, "v", ("uniform", 0.5, 1.5))
        text = (
            f"torch.batch_norm({v.name}, {weight.name}, {bias.name}, {mean.name}, "
            f"{variance.name}, False, 0.1, 1e-05, True)"
        )
        return p.let(text, v.shape, "batch norm")
    text = f"torch.group_norm({v.name}, {groups}, {weight.name}, {bias.name}"
    text += ", 1e-5)" if p.random.random() < 0.5 else ")"
    return p.let(text, v.shape, f"norm over {groups} groups of channels")


def pooling(p, v):
    n = v.rank - 2
    if n not in (1, 2, 3) or not isinstance(v.shape[1], int):
        return None
    name = p.random.choice(("max", "avg"))
    words = "maximum" if name == "max" else "mean"
    if p.random.random() < 0.4:
        width = p.random.choice((2, 3))
        sides = _window(p, v, width, width, 0)
        if sides is None:
            return None
        text = f"torch.{name}_pool{n}d({v.name}, {[width] * n}, {[width] * n})"
        return p.let(text, (*v.shape[:2], *sides), f"{words} of windows of {width}")
    width = p.random.choice((3, 5))
    text = f"torch.{name}_pool{n}d({v.name}, {[width] * n}, {[1] * n}, {[width // 2] * n})"
    return p.let(text, v.shape, f"{words} over windows of {width}")


def global_mean(p, v):
    if v.rank < 3 or not isinstance(v.shape[1], int):
        return None
    dims, n = list(range(2, v.rank)), v.rank - 2
    if p.random.random() < 0.3:
        text = f"torch.adaptive_avg_pool{n}d({v.name}, {[1] * n})"
        return p.let(text, (*v.shape[:2], *[1] * n), "mean of each channel")
    name, words = p.random.choice((("mean", "mean"), ("amax", "maximum")))
    return p.let(f"torch.{name}({v.name}, dim={dims})", v.shape[:2], f"{words} of each channel")
