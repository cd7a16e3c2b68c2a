"""Decides which values are in memory, makes a kernel for each, and prints the program."""

import math
import re

import torch
from costs import Launch
from dims import Dim
from domains import Domain
from emitting import NeedsBuffer
from kernels import (
    pointwise_kernel,
    reductions_of,
    row_domain,
    row_kernels,
    scan_kernel,
)
from values import Unsupported, Value

# Words that a name in Python may be and a name in C++ may not.
CPP_KEYWORDS = frozenset(
    "alignas auto bool case catch char const constexpr default delete do double enum explicit "
    "export extern false float friend goto inline int long mutable namespace new operator private "
    "protected public register short signed sizeof static struct switch template this throw true "
    "typedef typename union unsigned using virtual void volatile".split()
)
FUNCTIONS = re.compile(r"\w+f\(| / |device::(?:exponentials|moments|div|mod)")  # in a kernel
KERNEL_KINDS = ("pointwise", "reduce", "field", "scan")  # of values that kernels write
HALF_HEADERS = {
    torch.float16: "#include <cuda_fp16.h>\n",
    torch.bfloat16: "#include <cuda_bf16.h>\n",
}


def _base_of(v):
    """Returns the tensor that a value is a view of. v: any result of a statement."""
    while isinstance(v, Value) and v.kind == "view":
        v = v.operands[0]
    return v


class HostProgram:
    """lowered: what to compute. choices: how kernels are laid out. timed: a case's number."""

    def __init__(self, lowered, choices, timed):
        self.lowered = lowered
        self.b = lowered.b
        self.cases = lowered.b.cases
        self.choices = choices
        self.timed = timed
        self.lines = []
        self.kernels = []  # of name, text, and the text as it is printed
        self.names = {id(a): a.name for a in lowered.arguments}
        self.kept = list(lowered.arguments)  # values whose identity counts, kept alive
        self.made_calls = {}
        self.made = 0
        self.dtypes = set()
        self.steps = []  # calls and launches, in order, in words
        self.launches = []  # of costs.Launch, in order
        self.results = {id(v): n for n, v in lowered.known.items() if isinstance(v, Value)}
        self.taken = {a.name for a in lowered.arguments} | set(lowered.known)
        self._store_results()
        outputs = []
        for k, output in enumerate(lowered.outputs):
            text = self.in_host(output)
            outputs.append(f"{text}.clone()" if self._is_shared(output, k) else text)
        text = ", ".join(outputs) + ("," if lowered.is_tuple and len(outputs) == 1 else "")
        self.lines.append(f"return {text}")

    def _store_results(self):
        """Puts the results of statements into memory that `choices.stores` names."""
        needed, waiting = set(), list(self.lowered.outputs)
        while waiting:
            v = waiting.pop()
            if id(v) not in needed:
                needed.add(id(v))
                waiting += [o for o in v.operands if isinstance(o, Value)]
        for statement, is_stored in zip(self.lowered.reference.statements, self.choices.stores):
            v = _base_of(self.lowered.known[statement.name])
            is_made = id(v) in needed and v.kind in KERNEL_KINDS
            if is_stored and is_made and not self.in_memory(v):
                self._prepare_for(v, ())

    def _is_shared(self, output, k):
        """Whether an output is an argument, or an earlier output, or a view of one."""
        base = _base_of(output)
        return base in self.lowered.arguments or any(
            base is _base_of(other) for other in self.lowered.outputs[:k]
        )

    def in_memory(self, v):
        return id(v) in self.names

    def in_host(self, v):
        """Returns an expression of the host program for a value; views stay views."""
        if self.in_memory(v):
            return self.names[id(v)]
        if v.kind == "view" and v.how in ("reshape", "permute", "slice", "expand"):
            x = self.in_host(v.operands[0])
            if v.how == "reshape":
                return f"{x}.reshape([{self.size_list(v.dims)}])"
            if v.how == "permute":
                return f"{x}.permute([{', '.join(map(str, v.order))}])"
            if v.how == "slice":
                return f"{x}.narrow({v.axis}, {v.first}, {self.size(v.dims[v.axis])})"
            return f"{x}.expand([{self.size_list(v.dims)}])"
        self.materialise([v])
        return self.names[id(v)]

    def size(self, dim):
        for used in re.findall(r"([A-Za-z_]\w*)(?:\[\d+\])?\.size", dim.text):
            if used not in self.defined():
                raise Unsupported(f"a size of {used}, which is not there")
        return dim.text

    def defined(self):
        return set(self.names.values()) | {line.split(" ")[0] for line in self.lines}

    def size_list(self, dims):
        return ", ".join(self.size(d) for d in dims)

    def remember(self, v, name):
        self.names[id(v)] = name
        self.kept.append(v)

    def materialise(self, values):
        """Puts values into memory; several of them have one kernel."""
        v = values[0]
        if v.kind == "buffer":
            self._call(v)
        elif v.kind == "constant":
            name = self.fresh_name()
            self.lines.append(f"{name} = torch.full([{self.size_list(v.dims)}], {v.number!r}, "
                              f"dtype={v.dtype})")  # fmt: skip
            self.remember(v, name)
        else:
            self._launch(values)

    def _name_of(self, v):
        """Returns the name of the statement whose result a value is, or another one."""
        name = self.results.get(id(v), "")
        return name if name and name not in self.defined() else self.fresh_name()

    def fresh_name(self):
        self.made += 1
        return self._untaken("made", self.made - 1)

    def _untaken(self, stem, number):
        name = f"{stem}_{number}"
        return f"its_{name}" if name in self.taken else name

    def _call(self, v):
        if v.facts.get("prepared"):
            self.remember(v, v.name)
            return
        call = v.call
        if call.name not in self.made_calls:
            text = self._call_text(call)
            self.lines.append(f"{call.name} = {text}")
            self.steps.append(f"{call.name}: {call.operator}.")
            self.made_calls[call.name] = call
        name = v.name
        if not v.is_contiguous:
            name = f"{call.name}_{v.part or 0}_dense"
            self.lines.append(f"{name} = {v.name}.contiguous()")
        self.remember(v, name)

    def _call_text(self, call):
        operands = [self.printed(o) for o in call.operands]
        operands += [f"{k}={self.printed(o)}" for k, o in call.keywords.items()]
        if call.operator == "getitem":
            index = call.operands[1]
            parts = index if isinstance(index, list) else [index]
            return f"{operands[0]}[{', '.join(self.printed(p) for p in parts)}]"
        if call.is_method:
            return f"{operands[0]}.{call.operator}({', '.join(operands[1:])})"
        return f"torch.{call.operator}({', '.join(operands)})"

    def printed(self, operand):
        if isinstance(operand, Value):
            return self.in_host(operand)
        if isinstance(operand, Dim):
            return self.size(operand)
        if isinstance(operand, (list, tuple)):
            return "[" + ", ".join(self.printed(o) for o in operand) + "]"
        if isinstance(operand, slice):
            parts = [operand.start, operand.stop]
            parts += [] if operand.step is None else [operand.step]
            return ":".join("" if o is None else self.printed(o) for o in parts)
        if isinstance(operand, float) and operand in (float("inf"), -float("inf")):
            return f'float("{operand}")'
        return repr(operand)

    def _launch(self, sinks):
        while True:
            try:
                kernels = self._kernels(sinks)
                break
            except NeedsBuffer as needed:
                self._prepare_for(needed.value, sinks)
        for kernel in kernels:
            for _, v in kernel.parameters.tensors.values():
                self.in_host(v)
            self._launch_one(kernel)

    def _launch_one(self, kernel):
        outs, results = [], []
        for sink in kernel.sinks:
            out, sizes = self._name_of(sink), self.size_list(sink.dims)
            self.lines.append(f"{out} = torch.empty([{sizes}], dtype={sink.dtype})")
            self.remember(sink, out)
            outs.append(out)
            results.append(f"{out} [{sizes}]")
            self.dtypes.add(sink.dtype)
        tensors = [self.names[id(v)] for _, v in kernel.parameters.tensors.values()]
        self.dtypes.update(v.dtype for _, v in kernel.parameters.tensors.values())
        sizes = [self.size(d) for d in kernel.parameters.sizes]
        block = kernel.block if isinstance(kernel.block, tuple) else (kernel.block,)
        grid, per_block = self.size(kernel.grid[0]), kernel.grid[1]
        if per_block != 1:
            grid = f"({grid} + {per_block - 1}) // {per_block}"
        arguments = [*tensors, *outs, *sizes]
        name = self._named(kernel, arguments)
        block = ", ".join(map(str, block))
        self.lines.append(f'launch("{name}", [{grid}], [{block}], '
                          f'{", ".join([*arguments, *self.lowered.symbols])})')  # fmt: skip
        statements = [s.name for s in self.lowered.reference.statements]
        computed = [s for s in statements if s in kernel.computed]
        self.launches.append(self._launch_of(kernel, name, computed, outs))
        work = f"{', '.join(computed)} of {', '.join(tensors)}" if computed else ", ".join(tensors)
        facts = [", ".join(results), self._extent(kernel), kernel.division, f"blocks of {block}"]
        self.steps.append(f"{name}: {work} -> {', '.join(facts)}.")

    def _extent(self, kernel):
        """Returns what the threads of a kernel run over, in words."""
        rows = self.size(kernel.domain.rows())
        if kernel.team == "element":
            return f"{rows} elements"
        length = self.size(kernel.domain.row_length())
        return f"{rows} row{'' if rows == '1' else 's'} of {length}"

    def _launch_of(self, kernel, name, computed, outs):
        def bytes_of(values):
            return sum(math.prod(d.values[self.timed] for d in v.dims) * v.dtype.itemsize
                       for v in values)  # fmt: skip

        values = [*(v for _, v in kernel.parameters.tensors.values()), *kernel.sinks]
        elements = max(math.prod(d.values[self.timed] for d in v.dims) for v in values)
        block = math.prod(kernel.block) if isinstance(kernel.block, tuple) else kernel.block
        grid, per_block = kernel.grid[0].values[self.timed], kernel.grid[1]
        return Launch(
            name=name,
            computes=tuple(computed or outs),
            division=kernel.division,
            team=kernel.team,
            block=block,
            threads=-(-grid // per_block) * block,
            read=bytes_of(v for _, v in kernel.parameters.tensors.values()),
            written=bytes_of(kernel.sinks),
            passes=kernel.passes,
            functions=elements * len(FUNCTIONS.findall(kernel.text)),
        )

    def _prepare_for(self, needed, sinks):
        """Puts what a kernel cannot compute itself into memory first."""
        if needed in sinks:
            raise Unsupported("a value that no kernel covers")
        if needed.kind == "reduce":
            fields = [v for v in self.b.memory.values()
                      if v.kind == "field" and v.operands[0] is needed]  # fmt: skip
            fields = [f for f in fields if not self.in_memory(f)]
            self.materialise(fields or [needed])
        else:
            self.materialise([needed])

    def _kernels(self, sinks):
        v = sinks[0]
        if v.kind == "scan":
            return [scan_kernel(v, self.in_memory, self.cases, self.choices)]
        reductions = reductions_of(v, self.in_memory)
        for outer in reductions:
            domain = row_domain(outer, sinks, self.cases)
            if domain is None:
                continue
            pattern = domain.pattern()
            group = [r for r in reductions if self._fits(r, pattern)]
            return row_kernels(sinks, group, domain, self.in_memory, self.cases, self.choices,
                              self.timed)  # fmt: skip
        return [pointwise_kernel(v, self.in_memory, self.cases, self.choices)]

    def _fits(self, reduction, pattern):
        x = reduction.operands[0]
        flags = [k in reduction.axes for k in range(x.rank)]
        return Domain(x.dims, flags, self.cases).pattern() == pattern

    def _named(self, kernel, arguments):
        """Returns the name of the kernel. Its parameters get the names that the host program has
        for them when it is launched first."""
        for name, text, _ in self.kernels:
            if text == kernel.text:
                return name
        name = f"{kernel.kind}_{len(self.kernels)}"
        inner = [name for name, _ in kernel.parameters.tensors.values()]
        inner += [f"out{k}" for k in range(len(kernel.sinks))]
        inner += kernel.parameters.sizes.values()
        used = set(re.findall(r"(?<![.\w])\w+", kernel.text)) | CPP_KEYWORDS
        names = {}
        for mine, outer in zip(inner, arguments):
            if outer.isidentifier() and outer not in used and outer not in names.values():
                names[mine] = outer
        printed = re.sub(r"\b((?:in|out|n)\d+)(_pack)?\b",
                         lambda m: names.get(m[1], m[1]) + (m[2] or ""), kernel.text)  # fmt: skip
        symbols = "".join(f", {kernel.integer} {s}" for s in self.lowered.symbols)
        printed = printed.replace(", SYMBOLS", symbols, 1)
        self.kernels.append((name, kernel.text, printed.replace("NAME", name)))
        return name

    def cuda_block(self):
        if not self.kernels:
            return ""
        parts = ["".join(HALF_HEADERS[d] for d in HALF_HEADERS if d in self.dtypes)]
        texts = [printed for _, _, printed in self.kernels]
        return "\n".join([p for p in parts if p] + texts)

    def python_block(self):
        arguments = [a.name for a in self.lowered.arguments]
        prepared = [v for v in self.lowered.prepared.values() if self.in_memory(v)]
        inputs = [a.name for a in self.lowered.arguments if not a.is_parameter]
        parameters = [a.name for a in self.lowered.arguments if a.is_parameter]
        text = ""
        if prepared:
            body = "\n".join(self.lines)
            used = [p for p in parameters if re.search(rf"\b{p}\b", body)]
            listed = ", ".join(f"{p}: Tensor" for p in parameters)
            results = [*used, *(v.name for v in prepared)]
            text += f"def prepare({listed}):\n"
            for v in prepared:
                text += f"    {v.name} = {v.prepared}\n"
            text += "    return " + ", ".join(results) + "\n\n\n"
            arguments = [*inputs, *results]
        kind = "Tensor"
        if self.lowered.is_tuple:
            kind = f"Tuple[{', '.join(['Tensor'] * len(self.lowered.outputs))}]"
        listed = ", ".join(f"{a}: Tensor" for a in arguments)
        text += f"def forward({listed}) -> {kind}:\n"
        lines = [f"{symbol} = {size}" for symbol, size in self.lowered.symbols.items()]
        return text + "".join(f"    {line}\n" for line in [*lines, *self.lines])
