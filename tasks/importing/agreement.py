"""Compares an imported reference with its module.

Outputs are compared at the file's sizes and at odd sizes. The task's other distributions are tried
on the reference alone.
"""

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

# The judge's default tolerances (doc/evaluation.md, section 2). All other types have 1e-4.
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 2e-2, torch.float64: 1e-9}
# How each distribution but `declared` changes drawn values; the second argument is a generator.
CHANGES = {
    "shifted": lambda x, _: 10 * x + 25,
    "small": lambda x, _: x / 1000,
    "outliers": lambda x, g: x
    + (torch.rand(x.shape, generator=g) < 2e-4)
    * torch.where(torch.rand(x.shape, generator=g) < 0.5, -500.0, 500.0),
}
KEEPS_STATE = (
    "the module changes its own state when it is called; the reference computes its first call"
)


def difference(expected, given):
    """Returns how the outputs differ, in words, or None if they agree.

    Both arguments are lists of tensors. Shapes and types must be equal, integers and booleans
    exactly so; floating-point values must agree within `TOLERANCE`.
    """
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
            return f"output {i}: the positions of values that are not finite differ"
        scale = a[finite].square().mean().sqrt() if finite.any() else torch.zeros(())
        limit = TOLERANCE.get(expected[i - 1].dtype, 1e-4)
        worst = ((a - b).abs() - limit * a.abs())[finite].max() if finite.any() else torch.zeros(())
        if worst > limit * max(scale.item(), 1e-30):
            return (
                f"output {i} differs by up to {(a - b)[finite].abs().max().item():.3g} "
                f"where the root mean square is {scale.item():.3g}"
            )
    return None


class Check:
    """Compares the reference of one `Importer` with its module and chooses the task's cases.

    `run` raises Failure if the two disagree. It may replace the importer's graph with dynamic sizes
    by the static one, and it adds to the importer's notes. After `run`:

    text: the source of the reference.
    operators: the kinds of operators that the reference calls, such as "aten::relu".
    cases: pairs (sizes, whether they are timed on the CPU), without the case of the file's sizes.
    distributions: the names of the distributions that the task uses.
    checked: the sizes at which outputs were compared, in words.
    is_too_large_for_cpu: True if a CPU device cannot run the case of the file's sizes.
    """

    def __init__(self, importer):
        self.importer = importer
        self.cases, self.distributions, self.checked = [], ["declared", *CHANGES], ""
        self.cloned = []  # names of arguments that the reference copies before it writes into them
        self.disagrees = False  # at odd sizes

    def run(self):
        """Sets the attributes above. Raises Failure if the reference disagrees or fails."""
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
        """Returns True if a CPU device's process has room for a call in float64."""
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

    def try_dynamic(self, affordable):
        """Checks a graph with dynamic sizes.

        Outputs are compared at the file's sizes, or at reduced sizes if those cost too much, and at
        odd sizes. `affordable(sizes, times=1.0)` returns True if a check can run `times` calls.
        Returns False if the graph disagrees or cannot be checked; the static graph is used then.
        """
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
        # A module may not accept all sizes reduced at once. Then only the first size is reduced,
        # which is usually that of the batch.
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
        """Adds up to two untimed cases at which reference and module agree; else sets `disagrees`.

        `reduced`: reduced sizes from which further odd sizes are derived.
        """
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
                continue  # the module cannot run, or its inputs cannot be drawn, at these sizes
            except RuntimeError:
                self.disagrees = True
            if self.disagrees:
                return
            self.cases.append((odd, False))

    def constants_of(self, model):
        """Returns the graph's constants by placeholder, with the values that `model` has."""
        im = self.importer
        named = {
            **dict(model.named_parameters(remove_duplicate=False)),
            **dict(model.named_buffers(remove_duplicate=False)),
        }
        targets = {s.arg.name: s.target for s in im.program.graph_signature.input_specs}
        return {node: named.get(targets[node], value) for node, value in im.constants.items()}

    def check_smaller_numbers(self):
        """Checks a static graph that is too large to run.

        The file with smaller numbers must give a graph that differs in numbers only, and the
        reference of that graph must agree with its module. Raises Failure otherwise.
        """
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
            "it is too large to run here, and with smaller numbers the file gives no comparable "
            "graph, so it cannot be checked"
        )

    def with_smaller_numbers(self, factor):
        """Returns an Importer of the file with its numbers divided, or None if it has no graph."""
        im = self.importer
        try:
            small = type(im)(im.source.text, im.source.path, im.name, im.varies_constants, factor)
            small.gather()
            if not small.is_real:
                return None
            small.static = small.program = small.exported(small.model, small.inputs, None)
        except Exception:  # another factor may work, whatever the error is
            return None
        return small

    def agrees_with(self, small):
        """Returns True if `small` has the same graph up to numbers and agrees with its module.

        Raises Failure if the graph is the same but disagrees with its module.
        """
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
        """Returns sizes by the graph's symbols instead of their names."""
        return {symbol: sizes[name] for symbol, name in self.importer.sizes.items()}

    def compile(self):
        """Prints and compiles the reference, and sets `text`, `operators`, `unit` and `writes`."""
        self.text = self.importer.reference.text(self.cloned)
        try:
            self.unit, self.operators = reference.compile_source(self.text)
        except Exception as error:
            message = re.sub(r"\s+", " ", str(error)).strip()
            raise Failure(f"its graph does not compile as TorchScript: {message[:300]}") from None
        self.importer.text = self.text
        self.writes = any(
            k.startswith("aten::") and k.endswith("_") and not k.endswith("__")
            for k in self.operators
        )

    def require(self, problem):
        """Raises Failure unless `problem`, the result of `compare_at`, is None."""
        if problem is not None:
            raise Failure(f"the imported reference disagrees with the module: {problem}")

    def drawn(self, sizes, change=None):
        """Draws inputs as the task declares them, changed by one of `CHANGES` where it applies.

        Raises Failure if an input cannot be drawn at these sizes.
        """
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
        """Returns the reference's outputs for copies of the given inputs, as a list of tensors.

        If the graph writes into arguments, the reference is compiled again with copies of them and
        called with `self.fresh`, which must hold the inputs of this call.
        """
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
        if written:  # a task's reference must not change its arguments
            self.cloned += written
            self.compile()
            return self.call(tensors if not written else self.fresh)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    def compare_at(self, sizes, as_file=False):
        """Returns how the outputs of module and reference differ, in words, or None if they agree.

        Inputs are drawn at `sizes`, or taken from the file if `as_file` is True. Raises Failure if
        the module fails or an input cannot be drawn, RuntimeError if the reference fails.
        """
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
        for holder, before in names:  # each call of a task's reference acts as the first one
            if any(before.get(name) is not value for name, value in holder.items()):
                holder.clear()
                holder.update(before)
                if KEEPS_STATE not in im.notes:
                    im.notes.append(KEEPS_STATE)
        return difference(expected, self.call(tensors))

    def settle_distributions(self, sizes):
        """Leaves out distributions that make finite outputs infinite or NaN.

        All distributions stay if outputs are not finite with inputs as declared. Notes are added
        for distributions that are left out and for outputs that do not depend on the inputs.
        Raises Failure if an output holds no finite number with inputs as declared: a program whose
        outputs are all NaN would then be correct.
        """
        im = self.importer
        self.distributions = ["declared", *CHANGES]

        def outputs(change):
            self.fresh = self.drawn(sizes, change)
            return self.call(self.fresh)

        def keep_declared_alone():
            self.distributions = ["declared"]
            im.notes.append(
                "distributions are limited to declared: the reference fails with the others"
            )

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
            im.notes.append("its outputs do not depend on the values of its inputs")
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
                "distributions are limited to "
                + ", ".join(self.distributions)
                + ": the others give outputs that are not finite"
            )


def are_finite(outputs):
    """Returns True if all floating-point outputs are finite in every element."""
    return all(torch.isfinite(t).all() for t in outputs if t.dtype.is_floating_point)


def reduced(timed, names, affordable):
    """Returns the timed sizes with the named ones halved, largest first, until a call is cheap.

    A call is cheap if a check can run eight. No size is reduced below 3: if a call is not cheap
    then, returns those sizes if a check with PATIENCE can run the call, else None.
    """
    sizes = dict(timed)
    while not affordable(sizes, 8):
        largest = max(names, key=sizes.get)
        if sizes[largest] <= 3:
            return sizes if affordable(sizes, PATIENCE) else None
        sizes[largest] = max(3, sizes[largest] // 2)
    return sizes


def skeleton(text):
    """Returns a reference's source with every number replaced by 0."""
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "0", text)


def odd_sizes(timed):
    """Yields sizes to try beside the file's.

    Small odd numbers come first, then neighbours of the file's sizes, then changes of one size.
    """
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
