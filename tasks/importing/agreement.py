"""Compares an imported reference with its module.

Outputs are compared at the file's sizes and at odd sizes.
"""

import contextlib
import itertools
import math
import re

from compiled_reference import CompiledReference
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
from free_sizes import sizes_not_free, tied
from memory_contents import filled_memory, leave_numbers_in_memory
from module_call import outputs_of
from module_tensors import named_tensors
from output_difference import difference
from redraw_check import require_computed_from_parameters
from source_file import Failure, bytes_of, require_type
from task_result import has_result, require_finite
from ties import TieWatch
from trial_sizes import odd_sizes, reduced_sizes

# PyTorch has an operator for a short type on GPUs, but not on this CPU.
NOT_ON_CPUS = re.compile(r"not implemented for '(BFloat16|Half)'|could not create a primitive")


class Check:
    """Compares the reference of one `Importer` with its module and chooses the task's cases.

    `run` raises Failure if the two disagree. It may replace the importer's graph with dynamic sizes
    by the static one, and it adds to the importer's notes. After `run`:

    compiled: the CompiledReference.
    cases: pairs (sizes, whether they are timed on the CPU), without the case of the file's sizes.
    has_result: False if the outputs say nothing about the inputs.
    checked: the sizes at which outputs were compared, in words.
    is_too_large_for_cpu: True if a CPU device cannot run the case of the file's sizes.
    """

    def __init__(self, importer):
        self.importer = importer
        self.cases, self.has_result, self.checked = [], True, ""
        self.disagrees = False  # at odd sizes
        self.is_repeatable = False  # that the module agrees with itself is known
        self.is_file_finite = False  # the module's outputs for the file's inputs

    def run(self):
        """Sets the attributes above. Raises Failure if the reference disagrees or fails."""
        im = self.importer
        timed = im.specification.timed
        operations, held = cost(im.program, self.by_symbol(timed))
        self.is_too_large_for_cpu = (
            operations > CPU_OPERATIONS or held > 2 * RUN_BYTES or not self.fits_cpu(timed)
        )
        self.compiled = CompiledReference(im)

        def affordable(sizes, times=1.0):
            try:
                return is_affordable(*cost(im.program, self.by_symbol(sizes)), times)
            except ZeroDivisionError:  # the module has no such sizes
                return False

        if im.sizes and not self.try_dynamic(affordable):
            im.reference, im.program, im.sizes = im.printed(im.static), im.static, {}
            im.notes.clear()
            im.specify()
            self.cases = []
            self.compiled = CompiledReference(im)
        if not im.sizes:
            if im.is_real and affordable({}, PATIENCE):
                try:
                    self.require(self.compare_at({}, as_file=True))
                    if affordable({}):
                        self.require(self.compare_at({}))
                except RuntimeError as error:
                    raise Failure(
                        f"the imported reference fails where the module works: {last_line(error)}"
                    ) from None
                self.checked = "the file's sizes"
                self.examine_result({})
            else:
                self.check_smaller_numbers()

    def fits_cpu(self, sizes):
        """Returns True if a CPU device's process has room for a call in float64."""
        im = self.importer
        inputs = sum(
            math.prod(sizes.get(d, d) if isinstance(d, str) else d for d in spec["shape"])
            for spec in im.specification.inputs
        )
        parameters = sum(math.prod(spec["shape"]) for spec in im.specification.parameters)
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
        timed = im.specification.timed
        if bytes_of(im.constants.values()) > MODEL_BYTES:
            return False
        try:
            if not im.is_real:
                im.make_real()
                im.constants = self.constants_of(im.model)
            is_full = im.is_real and affordable(timed)
            if is_full and self.compare_at(timed, as_file=True) is not None:
                return False
        except Exception:
            return False
        # A module may not accept all sizes reduced at once. Then only the first size is reduced,
        # which is usually that of the batch.
        for names in [list(timed)] if is_full else [list(timed), list(timed)[:1]]:
            sizes = timed if is_full else reduced_sizes(timed, names, affordable)
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
        if self.disagrees:
            return False
        odd = [s for s, is_timed in self.cases if not is_timed]
        not_free = sizes_not_free(im.specification, self.compiled.call, odd if is_full else [])
        if not_free:
            im.sizes = tied(im.sizes, timed, not_free)
            im.specify()
            self.cases = []
            return self.try_dynamic(affordable)
        self.examine_result(next(iter(odd), sizes))
        return True

    def add_odd_cases(self, affordable, reduced=None):
        """Adds up to two untimed cases at which reference and module agree; else sets `disagrees`.

        `reduced`: reduced sizes from which further odd sizes are derived.
        """
        timed = self.importer.specification.timed
        for odd in itertools.chain(odd_sizes(timed), odd_sizes(reduced) if reduced else ()):
            if len([c for c in self.cases if not c[1]]) == 2:
                break
            if not affordable(odd) or any(odd == sizes for sizes, _ in self.cases) or odd == timed:
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
        named = named_tensors(model)
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
            small = type(im)(
                im.source.text,
                im.source.path,
                im.name,
                im.varies_constants,
                factor,
                dtype=im.dtype,
            )
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
        check.compiled = CompiledReference(small)
        check.require(check.compare_at({}, as_file=True))
        shapes = ", ".join(str(list(t.shape)) for t in small.input_tensors)
        self.checked = f"reduced sizes: inputs of {shapes}"
        if check.compiled.cloned:
            self.compiled = CompiledReference(im, check.compiled.cloned)
        im.notes.append(f"too large to run here: checked at {self.checked}")
        check.examine_result({})
        self.has_result = check.has_result
        im.notes += [n for n in small.notes if n not in im.notes]
        return True

    def by_symbol(self, sizes):
        """Returns sizes by the graph's symbols instead of their names."""
        return {symbol: sizes.get(name, name) for symbol, name in self.importer.sizes.items()}

    def require(self, problem):
        """Raises Failure unless `problem`, the result of `compare_at`, is None."""
        if problem is not None:
            raise Failure(f"the imported reference disagrees with the module: {problem}")

    def compare_at(self, sizes, as_file=False):
        """Returns how the outputs of module and reference differ, in words, or None if they agree.

        Inputs are drawn at `sizes`, or taken from the file if `as_file` is True. If PyTorch cannot
        run the task's types on a CPU, both run in float32. Raises Failure if the module fails or an
        input cannot be drawn, RuntimeError if the reference fails.
        """
        im = self.importer
        tensors = im.input_tensors if as_file else im.specification.draw_inputs(sizes)
        try:
            return self.compare_for(tensors, as_file)
        except Failure as failure:
            if not im.dtype or im.is_widened or not NOT_ON_CPUS.search(str(failure)):
                raise
        im.widen()
        return self.compare_for(tensors, as_file)

    def compare_for(self, tensors, as_file):
        """Returns how the outputs differ for these inputs; see compare_at."""
        im = self.importer
        tensors = [im.as_checked(t) for t in tensors]
        with TieWatch() if as_file else contextlib.nullcontext() as ties:
            expected = self.run_module(tensors)
        if ties is not None:
            im.notes += ties.notes()
            self.is_file_finite = all(bool(t.isfinite().all()) for t in expected)
        for i, t in enumerate(expected, 1):
            require_type(f"output {i}", t)
        self.require_repeatable(tensors, expected)
        return difference(expected, self.compiled.call(tensors))

    def require_repeatable(self, tensors, expected):
        """Raises Failure unless the module returns `expected` again, whatever memory held."""
        if self.is_repeatable:
            return
        with filled_memory():
            again = self.run_module(tensors)
        if difference(expected, again) is None and not all(
            bool(t.isfinite().all()) for t in expected
        ):
            # The first call may have met memory that was full of NaN as well.
            leave_numbers_in_memory(expected)
            again = self.run_module(tensors)
        if difference(expected, again) is None:
            self.is_repeatable = True
            return
        problem = difference(expected, self.run_module(tensors))
        if problem is not None:
            raise Failure(
                "the module returns another result when it is called again with the same inputs: "
                f"it draws random numbers, or reads memory that it has not written ({problem})"
            )
        raise Failure("the module's result depends on memory that it has not written")

    def run_module(self, tensors):
        """Returns the module's outputs for copies of inputs. Each call acts as the first one."""
        return outputs_of(self.importer, self.importer.model, tensors, self.written_tensors())

    def written_tensors(self):
        """Returns the tensors of the module that a call may write."""
        im = self.importer
        if self.compiled.writes:
            return list(im.constants.values())
        return list(im.model.buffers())

    def examine_result(self, sizes):
        """Sets `has_result` from the reference's outputs at `sizes`.

        Raises Failure if an output holds no finite number with inputs as declared.
        """
        im = self.importer
        varied = im.specification.draw_varied_parameters()
        self.has_result = has_result(
            lambda: im.specification.draw_inputs(sizes),
            lambda inputs, is_wide=False: self.compiled.call(inputs, is_wide, varied),
            im.notes,
        )
        if im.is_real:
            inputs = im.specification.draw_inputs(sizes)
            require_computed_from_parameters(im, self.compiled, inputs)
        if self.is_file_finite:
            inputs = im.specification.draw_inputs(im.specification.timed)
            require_finite(self.compiled.call([im.as_checked(t) for t in inputs]))


def last_line(error):
    """Returns what TorchScript's interpreter says of a failure, without its trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__).removeprefix("RuntimeError: ")[:200]


def skeleton(text):
    """Returns a reference's source with every number replaced by 0."""
    return re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "0", text)
