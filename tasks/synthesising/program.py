"""Programs that are being drawn: values with symbolic shapes, and the statements that make them."""

import dataclasses
import math

# Sizes of cases that are not timed: odd ones, so that programs which rely on multiples show.
SMALL_SIZES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
MAX_STATEMENTS_OF_TIER_1 = 5


def scaled(fan_in):
    """Returns how weights are drawn of which a result sums up this many."""
    return ("normal", 0.0, round(1 / math.sqrt(fan_in), 4))


def reduced(shape, dims, keeps):
    """Returns a shape after a reduction of the dimensions `dims`, which may stay as ones."""
    return [1 if i in dims else s for i, s in enumerate(shape) if keeps or i not in dims]


class Unfit(Exception):
    """A program that is no task. The text says why, in words that many programs share."""


@dataclasses.dataclass(frozen=True)
class Value:
    """A tensor of the program. `shape` holds numbers and names of sizes."""

    name: str
    shape: tuple
    kind: str = "float"  # or "index": int64
    is_made: bool = False  # by a statement

    @property
    def rank(self):
        return len(self.shape)


class Program:
    """A reference that is being drawn.

    random: a random.Random. Rules draw all their choices from it.
    timed, small: the value of each size in the timed case, and in two small cases.
    """

    def __init__(self, random):
        self.random = random
        # Dicts of name, shape, kind, and init: of what the values are drawn, with its arguments.
        self.inputs, self.parameters = [], []
        self.statements, self.words = [], []  # text of each statement; what it does, in words
        self.values = []  # all that a later statement may use
        self.timed, self.small = {}, ({}, {})
        self.outputs = []

    def size(self, name, timed, small=SMALL_SIZES):
        """Adds a size. Returns its name."""
        taken = self._untaken(name)
        self.timed[taken] = timed
        for case in self.small:
            case[taken] = self.random.choice(small)
        return taken

    def _untaken(self, name):
        while name in self.timed:
            name += name[0]
        return name

    def derive(self, size, change):
        """Returns change(size), a number, or the name of a new size if the old one has a name.

        Returns None if it is no size in some case.
        """
        if not isinstance(size, str):
            return change(size) if change(size) > 0 else None
        cases = (self.timed, *self.small)
        if any(change(case[size]) <= 0 for case in cases):
            return None
        name = self._untaken(size)
        for case in cases:
            case[name] = change(case[size])
        return name

    def timed_size(self, size):
        """Returns a size, a number or a name, in the timed case."""
        return self.timed.get(size, size)

    def others_like(self, v):
        """Returns the other floating-point values with the shape of a value."""
        return [u for u in self.values if u.shape == v.shape and u.kind == "float" and u != v]

    def given(self, case):
        """Returns the sizes of a case that the shapes of its arguments name."""
        named = {d for t in self.inputs + self.parameters for d in t["shape"]}
        return {name: size for name, size in case.items() if name in named}

    def in_case(self, case, shape):
        """Returns a shape in numbers. case: sizes by name."""
        return [case[d] if isinstance(d, str) else d for d in shape]

    def _tensor(self, into, name, shape, init, kind):
        value = Value(f"{name}{len(into) or ''}", tuple(shape), kind)
        into.append({"name": value.name, "shape": list(shape), "init": init, "kind": kind})
        self.values.append(value)
        return value

    def input(self, shape, name="x", init=("normal", 0.0, 1.0), kind="float"):
        return self._tensor(self.inputs, name, shape, init, kind)

    def parameter(self, shape, name="w", init=("normal", 0.0, 1.0)):
        """Adds a parameter. It is no value that other rules may pick."""
        value = self._tensor(self.parameters, name, shape, init, "float")
        self.values.pop()
        return value

    def let(self, text, shape, words, name="t"):
        """Adds a statement that names the result of an expression. Returns its value."""
        value = Value(f"{name}{len(self.statements)}", tuple(shape), is_made=True)
        self.statements.append(f"{value.name} = {text}")
        self.words.append(words)
        self.values.append(value)
        return value

    @property
    def tier(self):
        """How hard the program is: 1 or 2.

        Programs of tier 1 have few statements, on matrices and vectors alone. So they have no
        convolutions and no pooling.
        """
        is_flat = all(v.rank <= 2 for v in self.values)
        return 1 if is_flat and len(self.words) <= MAX_STATEMENTS_OF_TIER_1 else 2

    def reference(self):
        """Returns the source of the reference."""
        arguments = ", ".join(f"{t['name']}: Tensor" for t in self.inputs + self.parameters)
        names = [v.name for v in self.outputs]
        if len(names) == 1:
            result, kind = names[0], "Tensor"
        else:
            result, kind = ", ".join(names), f"Tuple[{', '.join(['Tensor'] * len(names))}]"
        body = "\n".join(f"    {s}" for s in [*self.statements, f"return {result}"])
        return f"def forward({arguments}) -> {kind}:\n{body}\n"

    def summary(self):
        """Returns one sentence that says what the program does."""
        return ", ".join(self.words[:8]) + (", and so on" if len(self.words) > 8 else "")
