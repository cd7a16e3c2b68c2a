"""Whether an imported reference computes what its module does: at the file's sizes, at odd ones, and on other distributions."""

import itertools
import math
import re

import torch

import drawing
import reference
from source_file import Failure, SourceFile, bytes_of, tensors_of

TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 2e-2, torch.float64: 1e-9}  # else 1e-4; as the judge's
CHANGES = {
    "shifted": lambda x, _: 10 * x + 25,
    "small": lambda x, _: x / 1000,
    "outliers": lambda x, g: x + (torch.rand(x.shape, generator=g) < 2e-4) * torch.where(torch.rand(x.shape, generator=g) < 0.5, -500.0, 500.0),
}
KEEPS_STATE = "the module changes itself when it is called; the reference computes its first call"
PATIENCE = 1 / 64  # how much more than usual a check may take where the module leaves no choice
VIEWS = {"view", "reshape", "transpose", "permute", "expand", "unsqueeze", "squeeze", "t", "select", "slice", "split", "chunk", "unbind", "detach", "flatten", "unfold"}


def difference(expected, given):
    """None, or how the outputs differ."""
    if len(expected) != len(given):
        return f"{len(given)} outputs, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(expected, given), 1):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i} is {b.dtype} {list(b.shape)}, expected {a.dtype} {list(a.shape)}"
        if not a.dtype.is_floating_point:
            if not torch.equal(a, b):
                return f"output {i} differs"
            continue
        a, b = a.double(), b.double()
        finite = torch.isfinite(a)
        if not torch.equal(finite, torch.isfinite(b)):
            return f"output {i}: values that are not finite are elsewhere"
        scale = a[finite].square().mean().sqrt() if finite.any() else torch.zeros(())
        limit = TOLERANCE.get(expected[i - 1].dtype, 1e-4)
        worst = ((a - b).abs() - limit * a.abs())[finite].max() if finite.any() else torch.zeros(())
        if worst > limit * max(scale.item(), 1e-30):
            return f"output {i} differs by up to {(a - b)[finite].abs().max().item():.3g} where the root mean square is {scale.item():.3g}"
    return None


def cost(program, values):
    """Operations and bytes of one call, estimated from the graph; `values` gives sizes to symbols."""

    known = {}  # substituting is slow, and few expressions are different

    def extent(e):
        if isinstance(e, int):
            return e
        expression = e.node.expr
        if expression not in known:
            number = expression.subs(values)
            known[expression] = int(number) if number.is_number else 1  # how many: only the contents tell
        return known[expression]

    def shape_of(node):
        value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
        return [extent(e) for e in value.shape] if isinstance(value, torch.Tensor) else None

    operations = held = 0
    given = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name not in given:
            continue
        value = node.meta.get("val")
        results = [v for v in (value if isinstance(value, (list, tuple)) else [value]) if isinstance(v, torch.Tensor)]
        count = sum(math.prod(extent(e) for e in v.shape) for v in results)
        name = node.target._schema.name.split("::")[1] if isinstance(node.target, torch._ops.OpOverload) else ""
        if name not in VIEWS:
            held += sum(math.prod(extent(e) for e in v.shape) * v.element_size() for v in results)
        shapes = [s for s in map(shape_of, torch.utils._pytree.tree_leaves(node.args)) if s is not None]
        operations += count * factor(name, shapes, count) if shapes and node.op == "call_function" else count
    return operations, held


def factor(name, shapes, count):
    """Operations for each element of the result."""
    if name in ("linear", "matmul", "mm", "bmm", "mv", "dot"):
        return 2 * (shapes[0][-1] if shapes[0] else 1)
    if name in ("addmm", "baddbmm") and len(shapes) > 1:
        return 2 * shapes[1][-1]
    if name.startswith("conv_transpose") and len(shapes) > 1:
        return 2 * math.prod(shapes[0]) * math.prod(shapes[1][1:]) / max(count, 1)
    if name.startswith("conv") and len(shapes) > 1:
        return 2 * math.prod(shapes[1][1:])
    if name in ("gru", "lstm", "rnn_tanh", "rnn_relu"):
        steps = math.prod(shapes[0][:-1])
        return 2 * steps * sum(math.prod(s) for s in shapes[2:] if len(s) == 2) / max(count, 1)
    if name in ("scaled_dot_product_attention", "einsum", "cdist", "bilinear"):
        return 4 * max(max(s) for s in shapes if s) if any(shapes) else 1
    if name.startswith(("max_pool", "avg_pool", "cumsum", "softmax", "layer_norm", "batch_norm", "group_norm", "sort")):
        return 10
    return max(1, max(math.prod(s) for s in shapes) / max(count, 1))


class NoNumbers(Failure):
    """The reference gives nothing that a program could be wrong about."""


class Check:
    """run() raises Failure where the reference disagrees; afterwards these say what stands in the task:

    text: the reference; operators: what it calls; cases: (sizes, timed on the CPU) beside the file's own; distributions;
    checked: the sizes that outputs were compared at, in words; is_too_large_for_cpu: the file's sizes.
    """

    def __init__(self, importer):
        self.importer = importer
        self.cases, self.distributions, self.checked = [], ["declared", *CHANGES], ""
        self.cloned = []
        self.disagrees = False

    def run(self):
        from import_module import CPU_OPERATIONS, RUN_BYTES

        im = self.importer
        operations, held = cost(im.program, self.by_symbol(im.timed))
        self.is_too_large_for_cpu = operations > CPU_OPERATIONS or held > 2 * RUN_BYTES or not self.fits_cpu(im.timed)
        self.compile()

        def affordable(sizes, times=1.0):
            try:
                return is_affordable(*cost(im.program, self.by_symbol(sizes)), times)
            except ZeroDivisionError:  # the module has no such sizes
                return False

        if im.sizes and not self.try_dynamic(affordable):
            im.reference, im.program, im.sizes = im.printed(im.static), im.static, {}
            im.notes.clear()
            im.specify()
            self.cases, self.cloned = [], []
            self.compile()
        if not im.sizes:
            if im.is_real and affordable({}, PATIENCE):
                self.require(self.compare_at({}, as_file=True))
                if affordable({}):
                    self.require(self.compare_at({}))
                self.checked = "the file's sizes"
                self.settle_distributions({})
            else:
                self.check_smaller_numbers()

    def fits_cpu(self, sizes):
        """Whether a call in float64, with all that it is given, has room in a CPU device's process."""
        from import_module import CPU_ARENA_BYTES, CPU_CALL_BYTES

        im = self.importer
        inputs = sum(math.prod(sizes.get(d, d) if isinstance(d, str) else d for d in spec["shape"]) for spec in im.input_specs)
        parameters = sum(math.prod(spec["shape"]) for spec in im.parameter_specs)
        return 8 * (inputs + parameters) <= CPU_ARENA_BYTES and 2 * cost(im.program, self.by_symbol(sizes))[1] <= CPU_CALL_BYTES

    # A graph with dynamic sizes is compared at the file's sizes, or at smaller ones where those take too much, and at odd ones.
    def try_dynamic(self, affordable):
        im = self.importer
        from import_module import MODEL_BYTES

        if bytes_of(im.constants.values()) > MODEL_BYTES:
            return False
        try:
            if not im.is_real:
                with im.source.doing("making the Model"):
                    im.model = im.source.model("cpu")
                im.constants = self.constants_of(im.model)
            is_full = im.is_real and affordable(im.timed)
            if is_full and self.compare_at(im.timed, as_file=True) is not None:
                return False
        except Exception:
            return False
        # Where all sizes made smaller are none that the module takes, the first one alone, which is mostly the batch.
        for names in [list(im.timed)] if is_full else [list(im.timed), list(im.timed)[:1]]:
            sizes = im.timed if is_full else reduced(im.timed, names, affordable)
            try:
                if sizes is not None and self.compare_at(sizes) is None:
                    break
            except Failure:
                continue
            except RuntimeError:
                return False
        else:
            return False
        self.checked = "the file's sizes" if is_full else "reduced sizes: " + " ".join(f"{n}={v}" for n, v in sizes.items())
        if not is_full:
            im.notes.append(f"too large to run here: checked at {self.checked}")
            if self.is_too_large_for_cpu:
                self.cases.append((sizes, True))
        self.add_odd_cases(lambda odd: affordable(odd, 1 if affordable(sizes) else PATIENCE), None if is_full else sizes)
        self.settle_distributions(next((s for s, is_timed in self.cases if not is_timed), sizes))
        return not self.disagrees

    def add_odd_cases(self, affordable, reduced=None):
        im = self.importer
        for odd in itertools.chain(odd_sizes(im.timed), odd_sizes(reduced) if reduced else ()):
            if len([c for c in self.cases if not c[1]]) == 2:
                break
            if not affordable(odd) or any(odd == sizes for sizes, _ in self.cases) or odd == im.timed:
                continue
            try:
                self.disagrees = self.compare_at(odd) is not None
            except Failure:
                continue  # the module, or how its inputs are drawn, has no such sizes
            except RuntimeError:
                self.disagrees = True
            if self.disagrees:
                return
            self.cases.append((odd, False))

    def constants_of(self, model):
        im = self.importer
        named = {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers(remove_duplicate=False))}
        targets = {s.arg.name: s.target for s in im.program.graph_signature.input_specs}
        return {node: named.get(targets[node], value) for node, value in im.constants.items()}

    # A static graph that is too large: the file with smaller numbers must give the same graph but for its numbers, and agree.
    def check_smaller_numbers(self):
        from import_module import Importer

        im = self.importer
        for patience, factor_ in itertools.product((1, PATIENCE), (4, 16, 64, 256)):
            small = Importer.__new__(Importer)
            try:
                small.source = SourceFile(im.source.text, im.source.path, factor_)
                small.name, small.notes, small.generator, small.varies_constants = im.name, [], im.generator, im.varies_constants
                small.gather()
                if not small.is_real:
                    continue
                small.static = small.program = small.exported(small.model, small.inputs, None)
                if not is_affordable(*cost(small.static, {}), patience):
                    continue
                small.sizes, small.reference = {}, small.printed(small.static)
                small.specify()
            except Failure:
                continue
            except Exception:
                continue
            if skeleton(small.reference.text()) != skeleton(im.reference.text()):
                continue
            check = Check(small)
            check.compile()
            check.require(check.compare_at({}, as_file=True))
            shapes = ", ".join(str(list(t.shape)) for t in small.input_tensors)
            self.checked = f"reduced sizes: inputs of {shapes}"
            if check.cloned:
                self.cloned = check.cloned
                self.compile()
            im.notes.append(f"too large to run here: checked at {self.checked}")
            check.settle_distributions({})
            self.distributions = check.distributions
            im.notes += [n for n in small.notes if n not in im.notes]
            return
        raise Failure("it is too large to run here, and with smaller numbers the file gives no comparable graph, so it cannot be checked")

    def by_symbol(self, sizes):
        return {symbol: sizes[name] for symbol, name in self.importer.sizes.items()}

    def compile(self):
        self.text = self.importer.reference.text(self.cloned)
        try:
            self.unit, self.operators = reference.compile_source(self.text)
        except Exception as error:
            message = re.sub(r"\s+", " ", str(error)).strip()
            raise Failure(f"its graph is no TorchScript: {message[:300]}") from None
        self.importer.text = self.text
        self.writes = any(k.startswith("aten::") and k.endswith("_") and not k.endswith("__") for k in self.operators)

    def require(self, problem):
        if problem is not None:
            raise Failure(f"the imported reference disagrees with the module: {problem}")

    def drawn(self, sizes, change=None):
        im = self.importer
        tensors = []
        for spec in im.input_specs:
            shape = [sizes.get(d, d) if isinstance(d, str) else d for d in spec["shape"]]
            try:
                tensors.append(spec["init"].draw(shape, spec["dtype"], sizes, im.generator, change))
            except Exception as error:
                raise Failure(f"{spec['name']} cannot be drawn as {spec['init'].text()}: {str(error)[:200]}") from None
        return tensors

    def call(self, tensors):
        im = self.importer
        parameters = [im.constants[node].detach() for node in im.reference.parameters]
        if self.writes:
            parameters = [p.clone() for p in parameters]
        tensors = [t.clone() for t in tensors]
        before = [t._version for t in tensors + parameters]
        with torch.no_grad():
            outputs = self.unit.forward(*tensors, *parameters)
        names = list(im.reference.inputs.values()) + list(im.reference.parameters.values())
        written = [n for n, t, v in zip(names, tensors + parameters, before) if t._version != v]
        if written:  # a task's reference leaves its arguments as they are
            self.cloned += written
            self.compile()
            return self.call(tensors if not written else self.fresh)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    def compare_at(self, sizes, as_file=False):
        """How the outputs differ, or None. Failure where the module itself fails, RuntimeError where the reference does."""
        im = self.importer
        self.fresh = tensors = im.input_tensors if as_file else self.drawn(sizes)
        leaves, layout = torch.utils._pytree.tree_flatten(im.inputs)
        queue = iter([t.clone() for t in tensors])
        arguments = torch.utils._pytree.tree_unflatten([next(queue) if isinstance(v, torch.Tensor) else v for v in leaves], layout)
        state = [(t, t.detach().clone()) for t in im.constants.values()] if self.writes else []
        names = [(holder, dict(holder)) for m in im.model.modules() for holder in (m.__dict__, m._buffers)]
        with im.source.doing("running the Model"), torch.no_grad(), torch.device("cpu"), drawing.AnyDevice():
            expected = [t.clone() for t in tensors_of(im.model(*arguments))]
        for i, t in enumerate(expected, 1):
            if t.dtype not in drawing.DTYPES:
                raise Failure(f"output {i} is of type {str(t.dtype).removeprefix('torch.')}, which tasks do not have")
        with torch.no_grad():
            for tensor, value in state:
                tensor.copy_(value)
        for holder, before in names:  # every call of a task's reference is the first one
            if any(before.get(name) is not value for name, value in holder.items()):
                holder.clear()
                holder.update(before)
                if KEEPS_STATE not in im.notes:
                    im.notes.append(KEEPS_STATE)
        return difference(expected, self.call(tensors))

    def settle_distributions(self, sizes):
        """Leaves out distributions for which the reference gives values that are not finite though as declared it does not.

        Failure where an output holds no number at all: a program that gives none would be right.
        """
        im = self.importer
        self.distributions = ["declared", *CHANGES]

        def outputs(change):
            self.fresh = self.drawn(sizes, change)
            return self.call(self.fresh)

        def is_finite(change):
            return all(torch.isfinite(t).all() for t in outputs(change) if t.dtype.is_floating_point)

        try:
            declared = outputs(None)
            for i, t in enumerate(declared, 1):
                if t.dtype.is_floating_point and t.numel() and not torch.isfinite(t).any():
                    raise NoNumbers(f"with inputs as the task declares them, output {i} holds no finite number")
            if all(torch.equal(a, b) for a, b in zip(declared, outputs(None))):
                im.notes.append("its outputs do not depend on what its inputs hold")
            if not all(torch.isfinite(t).all() for t in declared if t.dtype.is_floating_point):
                return
            for name, change in CHANGES.items():
                if not is_finite(change):
                    self.distributions.remove(name)
        except NoNumbers:
            raise
        except (RuntimeError, Failure):
            self.distributions = ["declared"]
            im.notes.append("only with inputs as declared: others make the reference fail")
            return
        if len(self.distributions) < 4:
            im.notes.append("only with inputs as " + ", ".join(self.distributions) + ": others give values that are not finite")


def is_affordable(operations, held, times=1.0):
    """Whether a check runs so much, where it may take 1 / `times` as long as usual. Memory it has 16 times as much at most."""
    from import_module import RUN_BYTES, RUN_OPERATIONS

    return operations * times <= RUN_OPERATIONS and held * max(times, 1 / 16) <= RUN_BYTES


def reduced(timed, names, affordable):
    """The timed sizes with the named ones halved, the largest first, until a call is cheap; None where it does not become so."""
    sizes = dict(timed)
    while not affordable(sizes, 8):
        largest = max(names, key=sizes.get)
        if sizes[largest] <= 3:
            return sizes if affordable(sizes, PATIENCE) else None
        sizes[largest] = max(3, sizes[largest] // 2)
    return sizes


def skeleton(text):
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "0", text)


def odd_sizes(timed):
    """Cases to try beside the file's: small odd numbers, then neighbours of the file's, then one size alone changed."""
    names = list(timed)
    small, more = [63, 37, 29, 17, 13, 11, 7, 5, 3], [5, 67, 41, 31, 19, 23, 9, 7, 5]

    def near(numbers):
        return {n: v if v > 2 * timed[n] and timed[n] > 2 else v for n, v in zip(names, numbers + numbers)}

    yield near(small)
    yield near(more)
    yield {n: timed[n] + 1 if timed[n] % 2 == 0 else timed[n] + 2 for n in names}
    yield {n: max(2, timed[n] // 2 | 1) for n in names}
    for name in names:
        yield timed | {name: 3 if timed[name] != 3 else 5}
        yield timed | {name: timed[name] + 1 if timed[name] % 2 == 0 else timed[name] + 2}
