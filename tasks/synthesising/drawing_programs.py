"""Draws programs: a style, a shape to begin with, some steps, and the returned values."""

from typing import NamedTuple

import channel_rules as channels
import network_rules as networks
import operator_rules as operators
from program import Program

MAX_DRAWS = 200  # of programs until one has the wanted tier
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


ANY_RULES = {
    operators.unary: 8,
    operators.affine: 3,
    operators.binary: 6,
    operators.broadcast: 3,
    operators.reduction: 4,
    operators.softmax: 2,
    operators.row_norm: 2,
    operators.linear: 4,
    operators.gram: 1,
    operators.attention: 1,
    channels.convolution: 5,
    channels.transposed_convolution: 1,
    channels.channel_bias: 3,
    channels.channel_norm: 2,
    channels.pooling: 2,
    channels.global_mean: 1,
    operators.scan: 2,
    operators.gather: 1,
    operators.shift: 1,
    operators.loss: 2,
    operators.outer: 1,
    operators.sum_of_product_in_vain: 1,
    operators.diagonal_product_in_vain: 1,
    operators.triangle_in_vain: 1,
    operators.identity_in_vain: 2,
    operators.last_of_scan_in_vain: 1,
    operators.sorted_extreme_in_vain: 1,
}
# Chains of any operators. There are few programs of two steps, and hardly any of one.
ANY = Style(
    {_matrix: 8, _vector: 1, _sequence: 4, _image: 4, _signal: 2, _volume: 1},
    ANY_RULES,
    ANY_RULES,
    {2: 1, 3: 3, 4: 3, 5: 3, 6: 3, 7: 3},
)
# A layer, and what networks have after it.
NETWORK = Style(
    {_features: 8, _image: 5, _volume: 5, _signal: 1, _sequence: 1},
    {networks.layer: 6, channels.convolution: 4, channels.transposed_convolution: 4},
    {
        operators.unary: 8,
        networks.arithmetic: 5,
        networks.written_out: 5,
        channels.channel_bias: 3,
        channels.channel_norm: 4,
        networks.layer_norm: 1,
        networks.scalar_parameter: 1,
        channels.pooling: 3,
        channels.global_mean: 2,
        networks.along: 2,
        networks.extreme: 2,
        networks.kept_reduction: 4,
        networks.residual: 2,
        networks.with_input: 1,
        networks.layer: 1,
        channels.convolution: 1,
    },
    {2: 2, 3: 4, 4: 4, 5: 3, 6: 2},
)
# One operator that modules are named after, or two.
SINGLE_RULES = {
    operators.unary: 3,
    networks.written_out: 2,
    networks.norm: 2,
    networks.along: 2,
    networks.extreme: 1,
    networks.kept_reduction: 2,
    networks.whole_loss: 2,
    networks.cross_entropy: 0.4,
    networks.product: 4,
    networks.layer: 1,
    networks.layer_norm: 1,
    channels.channel_norm: 2,
    channels.convolution: 5,
    channels.transposed_convolution: 4,
    channels.pooling: 4,
}
SINGLE = Style(
    {_matrix: 5, _features: 1, _array: 3, _sequence: 1, _image: 4, _signal: 2, _volume: 3},
    SINGLE_RULES,
    {
        operators.unary: 3,
        networks.arithmetic: 2,
        networks.norm: 1,
        networks.along: 1,
        networks.kept_reduction: 1,
        channels.pooling: 1,
    },
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
    for _ in range(MAX_DRAWS):
        p = draw_program(random)
        if p is not None and p.tier == tier:
            return p
    return None
