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


def window_size(side, kernel, stride, padding, dilation):
    """Returns the number of windows along a side, and its derivation, an equation of each step.

    The number is (side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1.
    """
    terms = [(2 * padding, f"2 * {padding}"), _span(kernel, dilation, -1)]
    terms.append((stride - 1, f"{stride} - 1"))
    found = stepped(side, 1, sum(n for n, _ in terms), stride)
    return found, _derivation(side, side.text, terms, stride, found)


def transposed_window_size(side, kernel, stride, padding, more, dilation):
    """Returns a side of the result of a transposed convolution, and its derivation.

    The side is (side - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1. more: the
    output padding.
    """
    terms = [(-stride, str(stride)), (-2 * padding, f"2 * {padding}"), _span(kernel, dilation, 1)]
    terms.append((more + 1, f"{more} + 1" if more else "1"))
    found = stepped(side, stride, sum(n for n, _ in terms))
    first = side.text if stride == 1 else f"{_group(side.text)} * {stride}"
    return found, _derivation(side, first, terms, 1, found)


def _span(kernel, dilation, sign):
    """Returns the distance from the first to the last element of a window, and its text."""
    steps = f"({kernel} - 1)"
    text = steps if dilation == 1 else f"{dilation} * {steps}"
    return sign * dilation * (kernel - 1), text


def _derivation(side, first, terms, divisor, found):
    """Returns `terms in full = terms as numbers = their sum = found` of one side."""
    terms = [(n, text) for n, text in terms if n]
    steps = []
    for texts in ([text for _, text in terms], [str(abs(n)) for n, _ in terms]):
        total = first + "".join(f" {'+' if n > 0 else '-'} {t}" for (n, _), t in zip(terms, texts))
        steps.append(f"{_group(total)} // {divisor}" if divisor != 1 else total)
    if side.constant is not None and divisor != 1:
        steps.append(f"{side.constant + sum(n for n, _ in terms)} // {divisor}")
    steps.append(found.text)
    return " = ".join(dict.fromkeys(steps))


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
