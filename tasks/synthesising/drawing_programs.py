"""Draws programs from the rules: a shape to begin with, some steps, and what is returned."""

from operator_rules import RULES
from program import Program

# Weights of the numbers of steps. There are few programs of two steps, and hardly any of one.
STEPS = {2: 1, 3: 3, 4: 3, 5: 3, 6: 3, 7: 3}
MOST_DRAWS = 200  # of programs until one has the wanted tier
# Heights, widths and depths of the cases that are not timed: their products count.
SMALL_SIDES = (3, 5, 7, 9, 11, 13)


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
    return p.input((batch, p.random.choice((8, 16, 32, 64)), height, width))


def _signal(p):
    batch = p.size("B", p.random.choice((8, 16, 32)))
    length = p.size("T", p.random.choice((256, 512, 1024, 4096)))
    return p.input((batch, p.random.choice((8, 16, 32, 64)), length))


def _volume(p):
    batch = p.size("B", p.random.choice((2, 4, 8)))
    depth = p.size("D", p.random.choice((8, 16)), SMALL_SIDES)
    height = p.size("H", p.random.choice((16, 24, 32)), SMALL_SIDES)
    return p.input((batch, p.random.choice((8, 16, 32)), depth, height, height))


# Weights of the shapes that a program begins with.
BEGINNINGS = {_matrix: 8, _vector: 1, _sequence: 4, _image: 4, _signal: 2, _volume: 1}


def draw_program(random):
    """Returns a Program, or None if the draw has come to nothing. random: a random.Random."""
    p = Program(random)
    begin = random.choices(list(BEGINNINGS), list(BEGINNINGS.values()))[0]
    value = begin(p)
    wanted = random.choices(list(STEPS), list(STEPS.values()))[0]
    steps = tries = 0
    while steps < wanted and tries < 60:
        tries += 1
        rule = random.choices(list(RULES), list(RULES.values()))[0]
        made = rule(p, value)
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
