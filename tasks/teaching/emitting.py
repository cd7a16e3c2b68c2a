"""Prints what a value is at an index, as statements of C."""

import math

import torch
from c_text import STORED, bare, grouped, literal, register_type, scaled, summed
from dims import product
from domains import ZERO, paired
from reductions import REDUCTIONS
from values import Unsupported
from writing import Writer

MAX_INLINE = 64  # elements of a reduction that every thread may run over


class NeedsBuffer(Exception):
    """A value must be in memory before this kernel can read it."""

    def __init__(self, value):
        super().__init__(value.kind)
        self.value = value


class Parameters:
    """The parameters of a kernel, in order: tensors that it reads, then sizes."""

    def __init__(self):
        self.tensors = {}  # by the id of a value: name and value
        self.sizes = {}  # by dimension, if no symbols say it: name

    def tensor(self, value):
        if id(value) not in self.tensors:
            self.tensors[id(value)] = (f"in{len(self.tensors)}", value)
        return self.tensors[id(value)][0]

    def size(self, dim):
        """Returns a factor in C: a number, an expression of symbols, or a parameter."""
        if dim.constant is not None:
            return str(dim.constant)
        if dim.is_symbolic:
            return grouped(dim.text.replace("//", "/"))
        if dim not in self.sizes:
            self.sizes[dim] = f"n{len(self.sizes)}"
        return self.sizes[dim]


class Emitter(Writer):
    """domain: what the kernel runs over. in_memory: a function that tells which values are.

    kept, reduced: the variables of C that hold the index among rows and inside of a row.
    """

    def __init__(self, domain, in_memory, kept, reduced, integer):
        super().__init__()
        self.domain = domain
        self.in_memory = in_memory
        self.variables = {False: kept, True: reduced}
        self.integer = integer
        self.parameters = Parameters()
        self.results = {}  # of reductions, by the id of the value: the variable with the state
        self.accumulator = "float"
        self.keeps_windows = True  # whether a window is worth computing in this kernel
        self.loaded_before = {}  # names of tensors whose element at the whole index is there
        self.computed = set()  # statements of the reference

    def size(self, dim):
        return self.parameters.size(dim)

    def text_of(self, index):
        if index == ZERO:
            return "0"
        return index[1] if index[0] == "text" else self._run(index[1], index[2])

    def _run(self, a, b):
        return self._remembered(("run", a, b), lambda: self._make_run(a, b))

    def _make_run(self, a, b):
        flags = self.domain.reduced[a : b + 1]
        if any(f != flags[0] for f in flags):
            m = a + next(k for k, f in enumerate(flags) if f != flags[0])
            left, right = self._run(a, m - 1), self._run(m, b)
            text = f"{left} * {self.size(self.domain.extent(m, b))} + {right}"
            return self.declare(self.integer, text, "p")
        places = self.domain.reduced_places if flags[0] else self.domain.kept_places
        behind = product([self.domain.dims[k] for k in places if k > b], self.domain.cases)
        text = self.variables[flags[0]]
        text = self.divided(text, behind)
        if places[0] < a:
            text = self.remainder(text, self.domain.extent(a, b))
        return text if text.isidentifier() else self.declare(self.integer, text, "p")

    # Indices are signed, so that loops over them unroll, and divided as if they were not, which
    # takes half the time.

    def divided(self, text, dim):
        return text if dim.is_one else self._unsigned(text, "/", dim)

    def remainder(self, text, dim):
        return "0" if dim.is_one else self._unsigned(text, "%", dim)

    def _unsigned(self, text, sign, dim):
        if self.integer != "int":
            return f"{text} {sign} {self.size(dim)}"
        name = "div" if sign == "/" else "mod"
        return f"device::{name}({text}, {bare(self.size(dim))})"

    def linear(self, index, dims):
        """The flattened index of a tensor with these dimensions."""
        whole = None
        for part, dim in zip(index, dims):
            if dim.is_one:
                continue
            if part[0] == "run" and self.domain.extent(part[1], part[2]) != dim:
                part = ("text", self._run(part[1], part[2]))
            if whole is None:
                whole = part
            elif whole[0] == part[0] == "run" and whole[2] + 1 == part[1]:
                whole = ("run", whole[1], part[2])
            else:
                before = scaled(self.text_of(whole), self.size(dim))
                whole = ("text", grouped(summed(before, self.text_of(part))))
        return whole or ZERO

    def split(self, index, dims):
        """The inverse of linear()."""
        if len(dims) == 1:
            return [index]
        if index[0] == "run":
            parts, at = [], index[1]
            for dim in dims:
                end = at
                while end <= index[2] and self.domain.extent(at, end) != dim:
                    end += 1
                if end > index[2]:
                    break
                parts.append(("run", at, end))
                at = end + 1
            if len(parts) == len(dims) and at == index[2] + 1:
                return parts
        text = self.text_of(index)
        parts = []
        for k, dim in enumerate(dims):
            behind = product(dims[k + 1 :], self.domain.cases)
            part = self.divided(text, behind)
            if k > 0:
                part = self.remainder(part, dim)
            parts.append(("text", self.declare(self.integer, part, "p")))
        return parts

    def reshaped(self, index, dims, others):
        """An index over dims as one over others, with the same number of elements."""
        live = iter([part for part, dim in zip(index, dims) if not dim.is_one])
        parts = []
        for mine, theirs in paired(dims, others, self.domain.cases):
            group = [next(live) for _ in mine]
            flat = self.linear(group, [d for d, _ in mine])
            parts += self.split(flat, theirs)
        at = iter(parts)
        return [ZERO if d.is_one else next(at) for d in others]

    def value(self, v, index):
        """Returns an expression of C for the element of v at this index."""
        if v.kind == "constant":
            return literal(v.number, v.dtype)
        if v.kind == "size":
            return f"(float){self.size(v.size)}"
        key = (id(v), tuple(ZERO if d.is_one else p for p, d in zip(index, v.dims)))
        return self._remembered(key, lambda: self._make(v, list(key[1])))

    def _make(self, v, index):
        if v.kind == "buffer" or self.in_memory(v):
            return self._load(v, index)
        return getattr(self, "_make_" + v.kind)(v, index)

    def _load(self, v, index):
        if v.dtype not in STORED:
            raise Unsupported(f"tensors of {v.dtype}")
        name = self.parameters.tensor(v)
        at = self.linear(index, v.dims)
        whole = ("run", 0, len(self.domain.dims) - 1)
        if at == whole and name in self.loaded_before:
            element = self.loaded_before[name]
        else:
            element = f"{name}[{bare(self.text_of(at))}]"
        text = STORED[v.dtype][1].format(element)
        of = v.name if v.kind == "buffer" else v.facts.get("statement")
        return self.declare(register_type(v.dtype), text, "v", of)

    def operand(self, v, k, index):
        operand = v.operands[k]
        behind = v.rank - operand.rank
        return self.value(operand, [ZERO if d.is_one else index[behind + j]
                                    for j, d in enumerate(operand.dims)])  # fmt: skip

    def _make_pointwise(self, v, index):
        is_float = v.dtype.is_floating_point
        texts = []
        for k, operand in enumerate(v.operands):
            if operand.kind == "constant" and not operand.dims:
                others = [o.dtype for o in v.operands if o.kind != "constant"]
                dtype = others[0] if others and not is_float else torch.float32
                if dtype == torch.bool:
                    dtype = torch.int64
                if isinstance(operand.number, float) and not operand.number.is_integer():
                    dtype = torch.float32
                texts.append(literal(operand.number, dtype))
            else:
                texts.append(self.operand(v, k, index))
        text = v.text.format(*texts)
        self.computed.add(v.facts.get("owner"))
        return self.declare(register_type(v.dtype), text, "v", v.facts.get("statement"))

    def _make_view(self, v, index):
        x = v.operands[0]
        if v.how == "reshape":
            inner = self.reshaped(index, v.dims, x.dims)
        elif v.how == "permute":
            inner = [ZERO] * x.rank
            for k, axis in enumerate(v.order):
                inner[axis] = index[k]
        elif v.how == "expand":
            behind = v.rank - x.rank
            inner = [ZERO if d.is_one else index[behind + k] for k, d in enumerate(x.dims)]
        elif v.how == "slice":
            inner = list(index)
            at = self.text_of(index[v.axis])
            inner[v.axis] = ("text", grouped(summed(at, str(v.first))))
        elif v.how == "flip":
            inner = list(index)
            for axis in v.axes:
                if not x.dims[axis].is_one:
                    last = self.size(x.dims[axis])
                    inner[axis] = ("text", f"({last} - 1 - {self.text_of(index[axis])})")
        elif v.how == "gather":
            inner = [*index, ("text", f"({self.integer}){self.value(v.operands[1], index)}")]
        else:
            raise Unsupported(v.how)
        return self.value(x, inner)

    def _make_window(self, v, index):
        if not self.keeps_windows:
            raise NeedsBuffer(v)
        x = v.operands[0]
        rank = len(v.kernel)
        result = self.fresh("w")
        self.emit(f"float {result} = {'-INFINITY' if v.how == 'max' else '0.0f'};")
        has_count = v.how == "mean" and any(v.padding) and not v.counts_padding
        if has_count:
            self.emit(f"int {result}_count = 0;")
        inner = list(index)
        for k in range(rank):
            loop = self.fresh("k")
            if math.prod(v.kernel) <= 27:
                self.emit("#pragma unroll")
            self.open(f"for (int {loop} = 0; {loop} < {v.kernel[k]}; ++{loop})")
            axis = x.rank - rank + k
            start = self.text_of(index[axis])
            step = loop if v.dilation[k] == 1 else f"{loop} * {v.dilation[k]}"
            text = summed(scaled(start, str(v.stride[k])), step)
            if not v.padding[k]:
                at = self.declare(self.integer, text, "p")
            else:
                last = f"{self.size(x.dims[axis])}"
                at = self.declare(self.integer, f"{text} - {v.padding[k]}", "p")
                self.emit(f"if ({at} < 0 || {at} >= {last}) continue;")
            inner[axis] = ("text", at)
        element = self.value(x, inner)
        if v.how == "max":
            self.emit(f"if ({element} > {result}) {result} = {element};")
        else:
            self.emit(f"{result} += {element};")
        if has_count:
            self.emit(f"++{result}_count;")
        for _ in range(rank):
            self.close()
        if v.how == "mean":
            count = f"{result}_count" if has_count else f"{math.prod(v.kernel)}.0f"
            self.emit(f"{result} /= {count};")
        return result

    def _make_field(self, v, index):
        return self._reduced(v.operands[0], index, v.field)

    def _make_reduce(self, v, index):
        return self._reduced(v, index, REDUCTIONS[v.how].fields[0])

    def _reduced(self, v, index, field):
        if id(v) in self.results and self.domain.places_in(index) == self.domain.kept_places:
            return f"{self.results[id(v)]}.{field}"
        return f"{self._inline_reduction(v, index)}.{field}"

    def _inline_reduction(self, v, index):
        """Runs over few elements in each thread."""
        x = v.operands[0]
        extents = [x.dims[a].constant for a in v.axes]
        if None in extents or math.prod(extents) > MAX_INLINE or v.how.startswith("arg"):
            raise NeedsBuffer(v)

        def make():
            state = self.new_state(v)
            inner = list(index)
            for axis, extent in zip(v.axes, extents):
                loop = self.fresh("k")
                self.open(f"for (int {loop} = 0; {loop} < {extent}; ++{loop})")
                inner[axis] = ("text", loop)
            self.update(v, state, self.value(x, inner), "0")
            for _ in extents:
                self.close()
            return state

        return self._remembered(("state", id(v), tuple(index)), make)

    def _make_scan(self, v, index):
        raise NeedsBuffer(v)

    def new_state(self, v):
        state = self.fresh("r", v.facts.get("owner"))
        self.computed.add(v.facts.get("owner"))
        self.emit(f"{REDUCTIONS[v.how].state(self.accumulator)} {state};")
        return state

    def update(self, v, state, value, at):
        place = f", {at}" if REDUCTIONS[v.how].takes_place else ""
        self.emit(f"{state}.add({value}{place});")
