"""Whether an imported reference computes what its module does: at the file's sizes, at odd ones, and on other distributions."""

import itertools
import math
import re

import torch

import drawing
import reference
from cost import (
    CPU_ARENA_BYTES,
    CPU_CALL_BYTES,
    CPU_OPERATIONS,
    MODEL_BYTES,
    PATIENCE,
    RUN_BYTES,
    cost,
    is_affordable,
)
from source_file import Failure, bytes_of, require_type, tensors_of

TOLERANCE = {
    torch.float16: 1e-2,
    torch.bfloat16: 2e-2,
    torch.float64: 1e-9,
}  # else 1e-4; as the judge's
CHANGES = {
    "shifted": lambda x, _: 10 * x + 25,
    "small": lambda x, _: x / 1000,
    "outliers": lambda x, g: x
    + (torch.rand(x.shape, generator=g) < 2e-4)
    * torch.where(torch.rand(x.shape, generator=g) < 0.5, -500.0, 500.0),
}
KEEPS_STATE = "the module changes itself when it is called; the reference computes its first call"


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
        im = self.importer
        operations, held = cost(im.program, self.by_symbol(im.timed))
        self.is_too_large_for_cpu = (
            operations > CPU_OPERATIONS or held > 2 * RUN_BYTES or not self.fits_cpu(im.timed)
        )
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
        im = self.importer
        inputs = sum(
            math.prod(sizes.get(d, d) if isinstance(d, str) else d for d in spec["shape"])
            for spec in im.input_specs
        )
        parameters = sum(math.prod(spec["shape"]) for spec in im.parameter_specs)
        return (
            8 * (inputs + parameters) <= CPU_ARENA_BYTES
            and 2 * cost(im.program, self.by_symbol(sizes))[1] <= CPU_CALL_BYTES
        )

    # A graph with dynamic sizes is compared at the file's sizes, or at smaller ones where those take too much, and at odd ones.
    def try_dynamic(self, affordable):
        im = self.importer
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
        self.checked = (
            "the file's sizes"
            if is_full
            else "reduced sizes: " + " ".join(f"{n}={v}" for n, v in sizes.items())
        )
        if not is_full:
            im.notes.append(f"too large to run here: checked at {self.checked}")
            if self.is_too_large_for_cpu:
                self.cases.append((sizes, True))
        self.add_odd_cases(
            lambda odd: affordable(odd, 1 if affordable(sizes) else PATIENCE),
            None if is_full else sizes,
        )
        self.settle_distributions(next((s for s, is_timed in self.cases if not is_timed), sizes))
        return not self.disagrees

    def add_odd_cases(self, affordable, reduced=None):
        im = self.importer
        for odd in itertools.chain(odd_sizes(im.timed), odd_sizes(reduced) if reduced else ()):
            if len([c for c in self.cases if not c[1]]) == 2:
                break
            if (
                not affordable(odd)
                or any(odd == sizes for sizes, _ in self.cases)
                or odd == im.timed
            ):
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
        named = {
            **dict(model.named_parameters(remove_duplicate=False)),
            **dict(model.named_buffers(remove_duplicate=False)),
        }
        targets = {s.arg.name: s.target for s in im.program.graph_signature.input_specs}
        return {node: named.get(targets[node], value) for node, value in im.constants.items()}

    # A static graph that is too large: the file with smaller numbers must give the same graph but for its numbers, and agree.
    def check_smaller_numbers(self):
        factors = [4, 16, 64, 256]
        for patience in (1, PATIENCE):
            too_much = []
            for factor in factors:
                small = self.with_smaller_numbers(factor)
                if small is None:
                    continue
                if not is_affordable(*cost(small.static, {}), patience):
                    too_much.append(factor)
                elif self.agrees_with(small):
                    return
            factors = too_much
        raise Failure(
            "it is too large to run here, and with smaller numbers the file gives no comparable graph, so it cannot be checked"
        )

    def with_smaller_numbers(self, factor):
        """The file's static graph with its numbers divided, or None where that gives none."""
        im = self.importer
        try:
            small = type(im)(im.source.text, im.source.path, im.name, im.varies_constants, factor)
            small.gather()
            if not small.is_real:
                return None
            small.static = small.program = small.exported(small.model, small.inputs, None)
        except Exception:  # whatever it is, there are other factors
            return None
        return small

    def agrees_with(self, small):
        """Whether that is the same graph; Failure where it then disagrees with its module."""
        im = self.importer
        try:
            small.sizes, small.reference = {}, small.printed(small.static)
            small.specify()
        except Exception:
            return False
        if skeleton(small.reference.text()) != skeleton(im.reference.text()):
            return False
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
        return True

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
        self.writes = any(
            k.startswith("aten::") and k.endswith("_") and not k.endswith("__")
            for k in self.operators
        )

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
                raise Failure(
                    f"{spec['name']} cannot be drawn as {spec['init'].text()}: {str(error)[:200]}"
                ) from None
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
        arguments = torch.utils._pytree.tree_unflatten(
            [next(queue) if isinstance(v, torch.Tensor) else v for v in leaves], layout
        )
        state = [(t, t.detach().clone()) for t in im.constants.values()] if self.writes else []
        names = [
            (holder, dict(holder))
            for m in im.model.modules()
            for holder in (m.__dict__, m._buffers)
        ]
        with (
            im.source.doing("running the Model"),
            torch.no_grad(),
            torch.device("cpu"),
            drawing.AnyDevice(),
        ):
            expected = [t.clone() for t in tensors_of(im.model(*arguments))]
        for i, t in enumerate(expected, 1):
            require_type(f"output {i}", t)
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

        def keep_declared_alone():
            self.distributions = ["declared"]
            im.notes.append("only with inputs as declared: others make the reference fail")

        try:
            declared, again = outputs(None), outputs(None)
        except (RuntimeError, Failure):
            return keep_declared_alone()
        for i, t in enumerate(declared, 1):
            if t.dtype.is_floating_point and t.numel() and not torch.isfinite(t).any():
                raise Failure(
                    f"with inputs as the task declares them, output {i} holds no finite number"
                )
        if all(torch.equal(a, b) for a, b in zip(declared, again)):
            im.notes.append("its outputs do not depend on what its inputs hold")
        if not are_finite(declared):
            return
        try:
            self.distributions = [
                "declared",
                *(name for name, change in CHANGES.items() if are_finite(outputs(change))),
            ]
        except (RuntimeError, Failure):
            return keep_declared_alone()
        if len(self.distributions) < 4:
            im.notes.append(
                "only with inputs as "
                + ", ".join(self.distributions)
                + ": others give values that are not finite"
            )


def are_finite(outputs):
    return all(torch.isfinite(t).all() for t in outputs if t.dtype.is_floating_point)


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
        return {
            n: v if v > 2 * timed[n] and timed[n] > 2 else v
            for n, v in zip(names, numbers + numbers)
        }

    yield near(small)
    yield near(more)
    yield {n: timed[n] + 1 if timed[n] % 2 == 0 else timed[n] + 2 for n in names}
    yield {n: max(2, timed[n] // 2 | 1) for n in names}
    for name in names:
        yield timed | {name: 3 if timed[name] != 3 else 5}
        yield timed | {name: timed[name] + 1 if timed[name] % 2 == 0 else timed[name] + 2}
