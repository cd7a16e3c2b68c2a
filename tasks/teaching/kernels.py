"""Kernels: the loops around the values that they compute."""

import torch
from c_text import STORED, bare
from dims import Dim, product
from domains import Domain, refined
from emitting import Emitter
from reductions import REDUCTIONS
from strategies import ByPart, strategy_for
from values import Value

LARGEST_INT = 2**31 - 1


class Kernel:
    """division: how threads share the work, in words. text: with the name as NAME, and SYMBOLS
    behind the parameters, whose type is `integer`. grid: a size, and how much of it a block covers.
    domain: what the threads run over.

    parameters: what the launch passes: values, then sinks, then sizes, then symbols.
    sinks: what it writes. computed: the statements of the reference. team: who works on a row, or
    "element" without rows. passes: how often a row is read.
    """

    def __init__(self, kind, division, text, grid, block, e, sinks, team="element", passes=1):
        self.kind = kind
        self.division = division
        self.team = team
        self.passes = passes
        self.text = text
        self.grid = grid
        self.block = block
        self.domain = e.domain
        self.parameters = e.parameters
        self.sinks = sinks
        self.integer = e.integer
        self.computed = e.computed | {v.facts.get("owner") for v in sinks}


class Choices:
    """The random moves: how kernels are laid out.

    rows: who works on a row, a key of strategies.STRATEGIES where it fits, or None for the default.
    stores: for each statement of the reference, whether its result is put into memory although a
    later kernel could compute it.
    """

    def __init__(self, block=256, items=4, row_block=None, is_serial=False, splits=True):
        self.block = block
        self.items = items
        self.row_block = row_block
        self.is_serial = is_serial  # every thread works alone, as suits the CPU device
        self.splits = splits
        self.rows = None
        self.unroll = 4
        self.stores = []


def integer_for(dims, cases):
    largest = max(product(dims, cases).values, default=0)
    return "int" if largest <= LARGEST_INT else "long long"


def signature(parameters, sinks, integer):
    """The kernel's parameters in C."""
    parts = [f"const {STORED[v.dtype][0]}* __restrict__ {name}"
             for name, v in parameters.tensors.values()]  # fmt: skip
    parts += [f"{STORED[v.dtype][0]}* __restrict__ out{k}" for k, v in enumerate(sinks)]
    parts += [f"{integer} {name}" for name in parameters.sizes.values()]
    return ", ".join([*parts, "SYMBOLS"])


def function(parameters, sinks, lines, integer):
    body = "\n".join("  " + line for line in lines)
    head = f'extern "C" __global__ void NAME({signature(parameters, sinks, integer)})'
    return f"{head} {{\n{body}\n}}\n"


def written(v, text):
    return STORED[v.dtype][2].format(text)


def pointwise_kernel(v, in_memory, cases, choices):
    """A thread computes one element, or several that follow each other and are loaded at once."""
    domain = Domain(v.dims, [False] * v.rank, cases)
    integer = integer_for(v.dims, cases)
    e = Emitter(domain, in_memory, "i", None, integer)
    whole = bare(e.size(product(v.dims, cases)))
    trial = _element(Emitter(domain, in_memory, "i", None, integer), v)
    flat = _flat_loads(trial, v)
    items = choices.items if flat and not choices.is_serial else 1
    out = STORED[v.dtype][0]
    if items == 1:
        e.emit(f"const {integer} i = ({integer})blockIdx.x * blockDim.x + threadIdx.x;")
        e.emit(f"if (i >= {whole}) return;")
        e.emit(f"out0[i] = {written(v, _value_at_home(e, v))};")
    else:
        place = f"({integer})blockIdx.x * blockDim.x + threadIdx.x"
        e.emit(f"const {integer} first = ({place}) * {items};")
        e.emit(f"const {integer} size = {whole};")
        e.emit("if (first >= size) return;")
        for name, value in trial.parameters.tensors.values():
            e.parameters.tensor(value)
            if name in flat:
                e.emit(f"const auto {name}_pack = device::load<{items}>({name}, first, size);")
                e.loaded_before[name] = f"{name}_pack.at[j]"
        e.emit(f"device::pack<{out}, {items}> result;")
        e.emit("#pragma unroll")
        e.open(f"for (int j = 0; j < {items}; ++j)")
        e.emit(f"const {integer} i = first + j < size ? first + j : first;")
        e.emit(f"result.at[j] = {written(v, _value_at_home(e, v))};")
        e.drop_unused("i")
        e.close()
        e.emit("device::store(out0, first, size, result);")
    text = function(e.parameters, [v], e.lines(), integer)
    per_block = choices.block * items
    grid = (product(v.dims, cases), per_block)
    division = "an element a thread" if items == 1 else f"{items} elements a thread"
    return Kernel("elements", division, text, grid, choices.block, e, [v])


def _value_at_home(e, v):
    e_in_memory = e.in_memory
    e.in_memory = lambda x: x is not v and e_in_memory(x)
    text = e.value(v, e.domain.index_over(v.dims))
    e.in_memory = e_in_memory
    return text


def _element(e, v):
    _value_at_home(e, v)
    return e


def _flat_loads(e, v):
    """The tensors that are read only at the index of the element itself, and are aligned."""
    names = set()
    text = "\n".join(e.lines())
    for name, value in e.parameters.tensors.values():
        uses = text.count(f"{name}[")
        if uses == 1 and f"{name}[i]" in text and value.facts.get("part") is None:
            names.add(name)
    return names


def scan_kernel(v, in_memory, cases, choices):
    """A block scans one row, chunk by chunk: warps by shuffles, then the warps' totals."""
    x = v.operands[0]
    reduced = [k == v.axis for k in range(v.rank)]
    domain = Domain(v.dims, reduced, cases)
    integer = integer_for(v.dims, cases)
    e = Emitter(domain, in_memory, "o", "r", integer)
    rows, length = (bare(e.size(d)) for d in (domain.rows(), domain.row_length()))
    sign, first = ("+", "0.0f") if v.how == "sum" else ("*", "1.0f")
    place = f"({length} - 1 - s)" if v.is_reverse else "s"
    if choices.is_serial:
        e.emit(f"const {integer} o = ({integer})blockIdx.x * blockDim.x + threadIdx.x;")
        e.emit(f"if (o >= {rows}) return;")
        # Errors of equal terms, such as running maxima, would add up in float.
        e.emit(f"double total = {first};")
        e.open(f"for ({integer} s = 0; s < {length}; ++s)")
        e.emit(f"const {integer} r = {place};")
        e.emit(f"total = total {sign} {e.value(x, domain.index_over(v.dims))};")
        e.emit(f"out0[{e.text_of(e.linear(domain.index_over(v.dims), v.dims))}] = "
               f"{written(v, 'total')};")  # fmt: skip
        e.close()
        text = function(e.parameters, [v], e.lines(), integer)
        grid = (domain.rows(), choices.block)
        return Kernel("scan", "a thread a row", text, grid, choices.block, e, [v])
    block = choices.row_block or 512
    e.emit(f"const {integer} o = blockIdx.x;")
    e.emit("__shared__ float totals[32];")
    e.emit(f"float before = {first};")
    e.open(f"for ({integer} start = 0; start < {length}; start += {block})")
    e.emit(f"const {integer} s = start + threadIdx.x;")
    e.emit(f"const {integer} r = s < {length} ? {place} : 0;")
    e.emit(f"float sum = s < {length} ? {e.value(x, domain.index_over(v.dims))} : {first};")
    e.emit("const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;")
    e.open("for (int step = 1; step < 32; step *= 2)")
    e.emit("const float other = __shfl_up_sync(0xffffffffu, sum, step);")
    e.emit(f"if (lane >= step) sum = sum {sign} other;")
    e.close()
    e.emit("if (lane == 31) totals[warp] = sum;")
    e.emit("__syncthreads();")
    e.emit("float ahead = before;")
    e.emit(f"for (int w = 0; w < warp; ++w) ahead = ahead {sign} totals[w];")
    e.emit(f"for (int w = 0; w < {block // 32}; ++w) before = before {sign} totals[w];")
    at = e.text_of(e.linear(domain.index_over(v.dims), v.dims))
    e.emit(f"if (s < {length}) out0[{at}] = {written(v, f'(ahead {sign} sum)')};")
    e.emit("__syncthreads();")
    e.close()
    text = function(e.parameters, [v], e.lines(), integer)
    grid = (domain.rows(), 1)
    return Kernel("scan", "a block a row", text, grid, block, e, [v], "block")


def reductions_of(v, in_memory):
    """The reductions that v needs and that are not in memory, the outermost first. A window looks
    at other rows, so what it needs must be in memory."""
    found, seen = [], set()

    def visit(x):
        if id(x) in seen:
            return
        seen.add(id(x))
        if x.kind in ("buffer", "window") or (x is not v and in_memory(x)):
            return
        if x.kind == "reduce":
            found.append(x)
        for operand in x.operands:
            visit(operand)

    visit(v)
    return found


def row_domain(reduction, sinks, cases):
    """The domain of a reduction, split as its sinks need it; None if they do not fit it."""
    x = reduction.operands[0]
    flags = [k in reduction.axes for k in range(x.rank)]
    dims = x.dims
    whole, rows = product(dims, cases), product(reduction.dims, cases)
    for sink in sinks:
        size = product(sink.dims, cases)
        if size != whole and size != rows:
            return None
        if size == whole:
            dims, flags = refined(dims, flags, sink.dims, cases)
    return Domain(dims, flags, cases)


def row_kernels(sinks, reductions, domain, in_memory, cases, choices, timed):
    """One or more passes over rows: reductions, each of which may need those before it, and at
    last the written values. timed: the number of the case that is timed. Returns kernels."""
    rows = RowKernels(sinks, domain, in_memory, cases, strategy_for(domain, choices, timed))
    stages, waiting = [], list(reversed(reductions))
    while waiting:
        stages.append([r for r in waiting if not _needs(r, waiting)])
        waiting = [r for r in waiting if r not in stages[-1]]
    return rows.in_parts(stages) if isinstance(rows.strategy, ByPart) else [rows.whole(stages)]


class RowKernels:
    def __init__(self, sinks, domain, in_memory, cases, strategy):
        self.sinks = sinks
        self.domain = domain
        self.in_memory = in_memory
        self.cases = cases
        self.strategy = strategy
        self.integer = integer_for(domain.dims, cases)
        size = product(domain.dims, cases)
        is_large = [product(s.dims, cases) == size and size != domain.rows() for s in sinks]
        self.large = [s for s, large in zip(sinks, is_large) if large]
        self.small = [s for s, large in zip(sinks, is_large) if not large]

    def _begin(self):
        e = Emitter(self.domain, lambda x: x not in self.sinks and self.in_memory(x), "o", "r",
                    self.integer)  # fmt: skip
        e.rows = bare(e.size(self.domain.rows()))
        e.length = bare(e.size(self.domain.row_length()))
        e.keeps_windows = not self.large
        self.strategy.begin(e)
        return e

    def _kernel(self, e, sinks, rows, per_block=1):
        text = function(e.parameters, sinks, e.lines(), self.integer)
        division, grid = self.strategy.division, (rows, per_block)
        team, passes = self.strategy.team, text.count("for (")
        return Kernel("rows", division, text, grid, self.strategy.block, e, sinks, team, passes)

    def whole(self, stages):
        e = self._begin()
        for stage in stages:
            self._pass(e, stage)
        self._write(e, self.small, self.large)
        return self._kernel(e, self.sinks, self.domain.rows(), self.strategy.rows_per_block)

    def in_parts(self, stages):
        strategy = self.strategy
        rows = self.domain.rows()
        parts = product([rows, Dim([strategy.parts] * self.cases, "")], self.cases)
        kernels, scratch = [], []
        for stage in [*stages, None]:
            if stage is None and self.small:
                strategy.begins_whole = True
                kernels.append(self._last(scratch, self.small, [], rows))
                strategy.begins_whole = False
            if stage is None and self.large:
                kernels.append(self._last(scratch, [], self.large, parts))
            if stage is None:
                return kernels
            e = self._begin()
            for v, memory in scratch:
                strategy.restore(e, v, e.parameters.tensor(memory))
            found = self._pass(e, stage)
            outs = []
            for k, (v, state) in enumerate(found):
                fields = REDUCTIONS[v.how].fields
                size = product([parts, Dim([len(fields)] * self.cases, "")], self.cases)
                outs.append(Value("scratch", [size], torch.float32))
                strategy.save(e, state, f"out{k}")
            scratch += [(v, memory) for (v, _), memory in zip(found, outs)]
            kernels.append(self._kernel(e, outs, parts))

    def _last(self, scratch, small, large, blocks):
        e = self._begin()
        for v, memory in scratch:
            self.strategy.restore(e, v, e.parameters.tensor(memory))
        self._write(e, small, large)
        return self._kernel(e, small + large, blocks)

    def _pass(self, e, stage):
        begin = len(e.lines())
        states = [(r, e.new_state(r)) for r in stage]
        self.strategy.open_loop(e)
        e.scopes[-1].begin = begin
        for r, state in states:
            x = r.operands[0]
            index = e.reshaped(self.domain.index_over(self.domain.dims), self.domain.dims, x.dims)
            e.update(r, state, e.value(x, index), "(int)r")
        e.close()
        for r, state in states:
            self.strategy.combine(e, state)
            e.results[id(r)] = state
        return states

    def _write(self, e, small, large):
        order = small + large
        kept = [self.domain.dims[k] for k in self.domain.kept_places]
        for sink in small:
            index = e.reshaped([("run", k, k) for k in self.domain.kept_places], kept, sink.dims)
            text = written(sink, e.value(sink, index))
            e.emit(f"{self.strategy.leads}out{order.index(sink)}[o] = {text};")
        if not large:
            return
        self.strategy.open_loop(e)
        for sink in large:
            index = e.reshaped(
                self.domain.index_over(self.domain.dims), self.domain.dims, sink.dims
            )
            text = written(sink, e.value(sink, index))
            at = e.text_of(e.linear(index, sink.dims))
            e.emit(f"{self.strategy.guard}out{order.index(sink)}[{at}] = {text};")
        e.close()


def _needs(reduction, others):
    """Whether the operand of a reduction is computed of another one's result."""
    seen = set()

    def visit(x):
        if id(x) in seen:
            return False
        seen.add(id(x))
        return any(o in others or visit(o) for o in x.operands)

    return any(r is not reduction for r in others) and visit(reduction)
