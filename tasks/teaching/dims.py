"""Sizes of dimensions: one number for each case of the task, and how a host program says it.

Two dimensions are the same if they have the same number in every case.
"""

import math


class Dim:
    """values: the number in each case. text: an expression of a host program."""

    def __init__(self, values, text):
        self.values = tuple(int(v) for v in values)
        self.constant = self.values[0] if len(set(self.values)) == 1 else None
        self.text = str(self.constant) if self.constant is not None else text

    @property
    def is_symbolic(self):
        """Whether numbers and the task's symbols say it, and no tensor."""
        return "." not in self.text

    def __eq__(self, other):
        return self.values == other.values

    def __hash__(self):
        return hash(self.values)

    @property
    def is_one(self):
        return self.constant == 1


def stepped(dim, factor, offset, divisor=1):
    """Returns (dim * factor + offset) // divisor, rounded down."""
    values = [(v * factor + offset) // divisor for v in dim.values]
    text = dim.text if factor == 1 else f"{_group(dim.text)} * {factor}"
    if offset:
        text = f"{text} {'+' if offset > 0 else '-'} {abs(offset)}"
    if divisor != 1:
        text = f"{_group(text)} // {divisor}"
    return Dim(values, text)


def constant_dim(number, cases):
    return Dim([number] * cases, str(number))


def product(dims, cases):
    """Returns the product of dimensions; of none, 1."""
    values = [math.prod(d.values[c] for d in dims) for c in range(cases)]
    texts = [d.text for d in dims if d.constant is None]
    constant = math.prod(d.constant for d in dims if d.constant is not None)
    if constant != 1 or not texts:
        texts.append(str(constant))
    return Dim(values, " * ".join(_group(t) for t in texts))


def _group(text):
    """The text as a factor of a product."""
    return f"({text})" if any(sign in text for sign in ("+", "- ", "//")) else text


def broadcast(shapes):
    """Returns the shape of an element-wise operation on these shapes, or None."""
    rank = max((len(s) for s in shapes), default=0)
    out = []
    for k in range(rank):
        chosen = None
        for shape in shapes:
            at = k - (rank - len(shape))
            if at < 0:
                continue
            dim = shape[at]
            if chosen is None or chosen.is_one:
                chosen = dim
            elif not dim.is_one and dim != chosen:
                return None
        out.append(chosen)
    return out


def express(values, known, cases):
    """Returns a dimension with these numbers, said by dimensions that are known, or None."""
    if len(set(values)) == 1:
        return constant_dim(values[0], cases)
    values = tuple(values)
    for dim in known:
        if dim.values == values:
            return dim
    for first in range(len(known)):
        for last in range(first + 2, len(known) + 1):
            whole = product(known[first:last], cases)
            if whole.values == values:
                return whole
    for dim in known:
        found = _affine(values, dim)
        if found is not None:
            return found
    return None


def _affine(values, dim):
    """Returns a * dim + b or (dim + b) // a with these numbers, or None."""
    if len(set(dim.values)) < 2:
        return None
    for a in range(1, 9):
        offsets = {v - a * d for v, d in zip(values, dim.values)}
        if len(offsets) == 1:
            return stepped(dim, a, offsets.pop())
    for a in range(2, 9):
        for b in range(-16, 17):
            if all((d + b) // a == v for v, d in zip(values, dim.values)):
                return stepped(dim, 1, b, a)
    return None
