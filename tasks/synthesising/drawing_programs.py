"""Draws programs: a style, a shape to begin with, some steps, and what is returned."""

from typing import NamedTuple

from channel_rules import (
    channel_bias,
    channel_norm,
    convolution,
    global_mean,
    pooling,
    transposed_convolution,
)
from network_rules import (
    along,
    arithmetic,
    cross_entropy,
    extreme,
    kept_reduction,
    layer,
    layer_norm,
    norm,
    product,
    residual,
    scalar_parameter,
    whole_loss,
    with_input,
    written_out,
)
from operator_rules import RULES, unary
from program import Program

MOST_DRAWS = 200  # of programs until one has the wanted tier
# Heights, widths and depths of the cases that are not timed: their products count.
SMALL_SIDES = (3, 5, 7, 9, 11, 13)


def _features(p):
    rows = p.size("N", p.random.choice((128, 512, 1024, 4096, 16384)))
    return p.input((rows, p.random.choice((16, 64, 128, 256, 512, 1024))))


def _matrix(p):
    rows = p.size("N", p.random.choice((512, 1024, 2048, 4096, 8192)))
    columns = p.size("M", p.random.choice((128, 256, 512, 768, 1024, 2048, 4096)))
    return p.input((rows, columns))


def _vector(p):
    return p.input((p.size("N", p.random.choice((256, 1024, 4096, 16384))),))


def _sequence(p):
    batch = p.size("B", p.random.choice((4, 8, 16, 32)))
    length = p.size("T", p.random.choice((64, 128, 256, 512)))
    width = p.random.choice((64, 128, 256))
    return p.input((batch, length, width))


def _image(p):
    batch = p.size("B", p.random.choice((8, 16, 32, 64)))
    height = p.size("H", p.random.choice((16, 28, 32, 56)), SMALL_SIDES)
    width = p.size("W", p.random.choice((16, 28, 32, 56)), SMALL_SIDES)
    return p.input((batch, p.random.choice((3, 8, 16, 32, 64)), height, width))


def _signal(p):
    batch = p.size("B", p.random.choice((8, 16, 32)))
    length = p.size("T", p.random.choice((256, 512, 1024, 4096)))
    return p.input((batch, p.random.choice((3, 8, 16, 32, 64)), length))


def _volume(p):
    batch = p.size("B", p.random.choice((2, 4, 8)))
    depth = p.size("D", p.random.choice((8, 16)), SMALL_SIDES)
    height = p.size("H", p.random.choice((16, 24, 32)), SMALL_SIDES)
    width = p.size("W", p.random.choice((16, 24, 32)), SMALL_SIDES)
    return p.input((batch, p.random.choice((3, 8, 16, 32)), depth, height, width))


def _array(p):
    """An input with three or four dimensions of any sizes."""
    sizes = [p.size("N", p.random.choice((4, 8, 16))), p.size("M", p.random.choice((32, 64, 256)))]
    for _ in range(p.random.choice((1, 2))):
        sizes.append(p.size("K", p.random.choice((32, 64, 128)), SMALL_SIDES))
    return p.input(sizes)


class Style(NamedTuple):
    """Weights of what programs begin with, of the first rule, of later ones, and of the steps."""

    beginnings: dict
    first_rules: dict
    rules: dict
    steps: dict


# Chains of any operators. There are few programs of two steps, and hardly any of one.
ANY = Style(
    {_matrix: 8, _vector: 1, _sequence: 4, _image: 4, _signal: 2, _volume: 1},
    RULES,
    RULES,
    {2: 1, 3: 3, 4: 3, 5: 3, 6: 3, 7: 3},
)
# A layer, and what networks have after it.
NETWORK = Style(
    {_features: 8, _image: 5, _volume: 5, _signal: 1, _sequence: 1},
    {layer: 6, convolution: 4, transposed_convolution: 4},
    {
        unary: 8,
        arithmetic: 5,
        written_out: 5,
        channel_bias: 3,
        channel_norm: 4,
        layer_norm: 1,
        scalar_parameter: 1,
        pooling: 3,
        global_mean: 2,
        along: 2,
        extreme: 2,
        kept_reduction: 4,
        residual: 2,
        with_input: 1,
        layer: 1,
        convolution: 1,
    },
    {2: 2, 3: 4, 4: 4, 5: 3, 6: 2},
)
# One operator that modules are named after, or two.
SINGLE_RULES = {
    unary: 3,
    written_out: 2,
    norm: 2,
    along: 2,
    extreme: 1,
    kept_reduction: 2,
    whole_loss: 2,
    cross_entropy: 0.4,
    product: 4,
    layer: 1,
    layer_norm: 1,
    channel_norm: 2,
    convolution: 5,
    transposed_convolution: 4,
    pooling: 4,
}
SINGLE = Style(
    {_matrix: 5, _features: 1, _array: 3, _sequence: 1, _image: 4, _signal: 2, _volume: 3},
    SINGLE_RULES,
    {unary: 3, arithmetic: 2, norm: 1, along: 1, kept_reduction: 1, pooling: 1},
    {1: 3, 2: 2},
)
STYLES, SHARES = (ANY, NETWORK, SINGLE), (5, 4, 2)


def _chosen(random, weights):
    return random.choices(list(weights), list(weights.values()))[0]


def draw_program(random):
    """Returns a Program, or None if the draw has come to nothing. random: a random.Random."""
    p = Program(random)
    style = random.choices(STYLES, SHARES)[0]
    value = _chosen(random, style.beginnings)(p)
    wanted = _chosen(random, style.steps)
    steps = tries = 0
    while steps < wanted and tries < 60:
        tries += 1
        made = _chosen(random, style.rules if steps else style.first_rules)(p, value)
        if made is not None:
            value, steps = made, steps + 1
    if not p.statements:
        return None
    p.outputs = [value]
    # Some programs also return a result from the middle.
    others = [v for v in p.values if v.is_made and v != value]
    if others and random.random() < 0.1:
        p.outputs.append(random.choice(others))
    return p


def draw_program_of(tier, random):
    """Returns the first Program of a tier that is drawn, or None if there is none for long."""
    for _ in range(MOST_DRAWS):
        p = draw_program(random)
        if p is not None and p.tier == tier:
            return p
    return None
