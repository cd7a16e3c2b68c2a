"""What a reference computes, as a graph of values that kernels can be made of.

A value is one of
    buffer     a tensor that exists: an argument, or what an ATen call of the host program returns
    constant   the same number everywhere
    size       a product of sizes, as a number
    pointwise  an expression of C over the elements of its operands, which broadcast
    view       another look at an operand: every index of it is an index of the operand
    reduce     a reduction over dimensions, which stay with the size 1
    field      one of several results of a reduction
    window     a reduction over a window that moves over the last dimensions: pooling
    scan       running sums or products along one dimension
"""

import torch
from dims import broadcast, constant_dim, express, product


class Unsupported(Exception):
    """The rules do not cover this; the host program calls ATen for it."""


class Value:
    def __init__(self, kind, dims, dtype, operands=(), **facts):
        self.kind = kind
        self.dims = list(dims)
        self.dtype = dtype
        self.operands = list(operands)
        self.facts = facts
        self.least, self.most = facts.pop("range", (-float("inf"), float("inf")))

    def __getattr__(self, name):
        try:
            return self.__dict__["facts"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def rank(self):
        return len(self.dims)


class Builder:
    """Makes values. cases: the number of the task's cases."""

    def __init__(self, cases):
        self.cases = cases
        self.memory = {}  # equal values are one value

    def one(self):
        return constant_dim(1, self.cases)

    def constant(self, number, dims=(), dtype=torch.float32):
        key = ("constant", number, tuple(dims), dtype)
        return self._once(key, lambda: Value("constant", dims, dtype, number=number,
                                             range=(number, number)))  # fmt: skip

    def as_value(self, operand, like=None):
        if isinstance(operand, Value):
            return operand
        if not isinstance(operand, (int, float, bool)):
            raise Unsupported(f"operand {operand!r}")
        return self.constant(operand, (), like or torch.float32)

    def pointwise(self, text, *operands, dtype=None, fold=None, range=None):
        """text: C with {0}, {1}, ... fold: the same on numbers, for operands that are constant."""
        operands = [self.as_value(o) for o in operands]
        dims = broadcast([o.dims for o in operands])
        if dims is None:
            raise Unsupported("shapes that do not broadcast")
        dtype = dtype or self.promoted(operands)
        if fold is not None and all(o.kind == "constant" for o in operands):
            try:
                return self.constant(fold(*[o.number for o in operands]), dims, dtype)
            except (ArithmeticError, ValueError, TypeError):
                pass
        if range is not None and range[0] == range[1]:
            return self.constant(range[0], dims, dtype)
        key = ("pointwise", text, tuple(id(o) for o in operands), dtype)
        facts = {"range": range} if range is not None else {}
        return self._once(
            key, lambda: Value("pointwise", dims, dtype, operands, text=text, **facts)
        )

    def promoted(self, operands):
        """The type of an arithmetic operation. Numbers in the program count less than tensors."""
        tensors = [o for o in operands if not (o.kind == "constant" and not o.dims)] or operands
        dtype = tensors[0].dtype
        for o in tensors[1:]:
            dtype = torch.promote_types(dtype, o.dtype)
        if not dtype.is_floating_point and any(
            o.kind == "constant" and isinstance(o.number, float) for o in operands
        ):
            dtype = torch.float32
        return dtype

    def view(self, how, operand, dims, **facts):
        if operand.kind == "constant":
            return self.constant(operand.number, dims, operand.dtype)
        key = ("view", how, id(operand), tuple(dims), tuple(sorted(facts.items())))
        facts["range"] = (operand.least, operand.most)
        return self._once(
            key, lambda: Value("view", dims, operand.dtype, [operand], how=how, **facts)
        )

    def permuted(self, x, order):
        order = [o % x.rank for o in order]
        if x.kind == "view" and x.how == "permute":
            return self.permuted(x.operands[0], [x.order[o] for o in order])
        if order == list(range(x.rank)):
            return x
        return self.view("permute", x, [x.dims[o] for o in order], order=tuple(order))

    def reshape(self, operand, dims):
        if list(dims) == list(operand.dims):
            return operand
        if operand.kind == "view" and operand.how == "reshape":
            return self.reshape(operand.operands[0], dims)
        return self.view("reshape", operand, dims)

    def reshape_to(self, operand, shapes):
        """shapes: the numbers of each case."""
        dims = []
        for k in range(len(shapes[0])):
            dim = express([s[k] for s in shapes], operand.dims, self.cases)
            if dim is None:
                raise Unsupported("a size that is not said by others")
            dims.append(dim)
        return self.reshape(operand, dims)

    def reduce(self, how, operand, axes, keep=True, dtype=None):
        """how: a name of reductions.py. Without axes, over all."""
        axes = sorted({a % max(operand.rank, 1) for a in (axes if axes else range(operand.rank))})
        axes = [a for a in axes if a < operand.rank]
        kept = [self.one() if k in axes else d for k, d in enumerate(operand.dims)]
        if all(operand.dims[a].is_one for a in axes) and how in ("sum", "prod", "max", "min"):
            out = operand
        elif operand.kind == "constant" and how in ("max", "min"):
            out = self.constant(operand.number, kept, operand.dtype)
        else:
            key = ("reduce", how, id(operand), tuple(axes))
            out = self._once(key, lambda: Value("reduce", kept, dtype or operand.dtype, [operand],
                                                how=how, axes=tuple(axes)))  # fmt: skip
        return out if keep else self.dropped(out, axes)

    def field(self, reduction, field, dtype=None):
        """One of the results of a reduction with several, such as mean and variance."""
        key = ("field", id(reduction), field)
        return self._once(key, lambda: Value("field", reduction.dims, dtype or reduction.dtype,
                                             [reduction], field=field))  # fmt: skip

    def dropped(self, operand, axes):
        dims = [d for k, d in enumerate(operand.dims) if k not in axes]
        return self.reshape(operand, dims)

    def extent(self, operand, axes):
        """The number of elements that a reduction combines, as a value."""
        axes = axes if axes else range(operand.rank)
        whole = product([operand.dims[a % operand.rank] for a in axes], self.cases)
        if whole.constant is not None:
            return self.constant(float(whole.constant))
        return Value("size", (), torch.float32, size=whole)

    def buffer(self, name, dims, dtype, **facts):
        return Value("buffer", dims, dtype, name=name, **facts)

    def _once(self, key, make):
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]
