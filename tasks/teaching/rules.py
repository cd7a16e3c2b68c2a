"""The table of operators: what each becomes in terms of values. The modules of rules fill it."""

import torch
from values import Unsupported, Value

RULES = {}


class Call:
    """What a rule receives. b: the builder. x and so on come as arguments.

    shapes: the result's sizes in each case, of an operator with one result. dtype: its type.
    """

    def __init__(self, b, shapes, dtype, facts):
        self.b = b
        self.shapes = shapes
        self.dtype = dtype
        self.facts = facts  # of the task: device, prepared, and who reads what

    def derived(self, size_and_text):
        """Returns a size of this call's result, and notes its derivation for the document."""
        size, text = size_and_text
        if text not in self.facts["derivations"]:
            self.facts["derivations"].append(text)
        return size


def rule(*names):
    def add(function):
        for name in names:
            RULES[name] = function
        return function

    return add


def tensor(operand):
    if not isinstance(operand, Value):
        raise Unsupported("an operand that is no tensor")
    return operand


def number(operand):
    if isinstance(operand, bool) or not isinstance(operand, (int, float)):
        raise Unsupported("an operand that is no number")
    return operand


def numbers(operand, count):
    """Returns a list of integers, one for each dimension: [2] and 2 stand for [2, 2]."""
    if isinstance(operand, int):
        operand = [operand]
    if not isinstance(operand, list) or not all(isinstance(o, int) for o in operand):
        raise Unsupported("an operand that is no list of integers")
    return operand * count if len(operand) == 1 else list(operand)


def axes_of(x, dim):
    if dim is None:
        return list(range(x.rank))
    dims = [dim] if isinstance(dim, int) else dim
    if not isinstance(dims, list) or not all(isinstance(d, int) for d in dims):
        raise Unsupported("dimensions that are no numbers")
    return [d % x.rank for d in dims] if dims else list(range(x.rank))


def computed_in_float(x):
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise Unsupported(f"arithmetic in {x.dtype}")
    return x


def by_channel(b, v, rank, axis=1):
    """Returns a vector over the channels as a tensor of this rank that broadcasts."""
    if v is None:
        return None
    dims = [b.one()] * rank
    dims[axis] = tensor(v).dims[0]
    return b.reshape(v, dims)
