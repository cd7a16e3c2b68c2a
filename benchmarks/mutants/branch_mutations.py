"""Mutations that are right for some calls only: for some shapes, or for some magnitudes.

For all other calls the output is wrong, or comes from a cheaper program that reads a sample or
computes with fewer digits.
"""

import itertools
import re

import precision_mutations
import reduction_mutations
import torch
from subject import Mutation
from value_mutations import ZEROED

# Wrong forms of a right output y.
WRONG = {
    "the output is zero": ("torch.zeros_like(y)", None),
    "the output is its mean": ("torch.mean(y).expand_as(y).contiguous()", None),
    "half of the output is zero": (
        "zeroed(y, 0, torch.arange(y.size(0)) < (y.size(0) + 1) // 2)",
        ZEROED,
    ),
    "the output is 1.001 times larger": ("y * 1.001", None),
    "the output is rounded to bfloat16": ("y.to(torch.bfloat16).to(y.dtype)", None),
}
# Statistics of an input x.
STATISTICS = {
    "the standard deviation": "torch.std(x.reshape([-1]))",
    "the mean magnitude": "torch.mean(torch.abs(x))",
    "the largest magnitude": "torch.amax(torch.abs(x))",
    "the largest magnitude of a sample": "torch.amax(torch.abs(x.reshape([-1])[:256]))",
    "the mean": "torch.abs(torch.mean(x))",
}
CHEAPER = 6  # number of cheaper programs
MAX_DRAWN = 1 << 18  # values of an input
FACTORS = (2.0, 8.0)  # by which a statistic of moderate inputs may differ from the declared one
CLAMPED_AT = (6.0, 30.0)  # standard deviations
FLUSHED_BELOW = ("1e-4", "1e-3", "1e-2", "0.1")


def mutations(subject):
    yield from right_for_shapes(subject)
    yield from right_for_magnitudes(subject)
    yield from right_for_elements(subject)


def changed_outputs(subject, lines_of):
    """Returns a maker of the program whose floating-point outputs are changed.

    lines_of: returns the statements for the number of an output.
    """

    def make():
        program = subject.program
        for number, name in enumerate(subject.program.outputs):
            if name in subject.layouts and subject.is_float(name):
                program = program.changing_output(number, lines_of(number))
        return program

    return make


def wrong_forms(subject):
    """Returns the wrong forms that the outputs can have: what, the text, and its helpers."""
    if subject.wrong_forms is None:
        ranks = [subject.rank(n) for n in subject.program.outputs if n in subject.layouts]
        subject.wrong_forms = [
            (what, re.sub(r"\by\b", "GIVEN", text), () if helper is None else (helper,))
            for what, (text, helper) in WRONG.items()
            if helper is None or (ranks and min(ranks) > 0)
        ]
        subject.wrong_forms += list(cheaper_programs(subject))
    return subject.wrong_forms


def cheaper_programs(subject):
    """Yields the outputs of cheaper programs, as wrong_forms() does."""
    if len(subject.program.outputs) != 1:
        return
    sampled = list(reduction_mutations.mutations(subject))
    rounded = [m for m in precision_mutations.mutations(subject) if m.kind == "everything_rounded"]
    for mutations_of_kind in (sampled, rounded):
        step = max(1, len(mutations_of_kind) // (CHEAPER // 2))
        for mutation in itertools.islice(mutations_of_kind[::step], CHEAPER // 2):
            program = mutation.make().text()
            helper = program.replace("def forward(", "def cheaper(")
            arguments = ", ".join(subject.program.arguments)
            if subject.problem_of(program) is None:
                yield mutation.description, f"cheaper({arguments})", (helper,)


def helped(make, helpers):
    return lambda: make().with_helpers(*helpers)


def shape_conditions(task):
    """Yields each condition that holds exactly in the timed cases."""
    for tensor in task.tensors:
        for d in range(len(tensor.shape)):
            sizes = [tensor.shape_in(case)[d] for case in task.cases]
            timed = {s for s, is_timed in zip(sizes, task.timed) if is_timed}
            if timed and timed.isdisjoint(s for s, t in zip(sizes, task.timed) if not t):
                if len(timed) < len(set(sizes)):
                    yield tensor, d, sorted(timed)


def right_for_shapes(subject):
    names = dict(zip((t.name for t in subject.task.tensors), subject.program.arguments))
    for tensor, d, timed in shape_conditions(subject.task):
        size = f"{names[tensor.name]}.size({d})"
        is_timed = " or ".join(f"{size} == {s}" for s in timed)
        for kind, right, condition in (
            ("right_for_timed_shape", "the timed shape", f"not ({is_timed})"),
            ("right_for_odd_shape", "shapes that are not timed", is_timed),
        ):
            for what, text, helpers in wrong_forms(subject):
                lines = [f"NAME = GIVEN\nif {condition}:\n    NAME = {text}"]
                make = changed_outputs(subject, lambda _, lines=lines: lines)
                yield Mutation(
                    kind, what, 0, f"right for {right} only, by {size}; else {what}",
                    helped(make, helpers),
                )  # fmt: skip


def declared_values(subject):
    """Yields each floating-point input with a sample of the values that the task declares."""
    generator = torch.Generator().manual_seed(1)
    sizes = min(subject.task.cases, key=subject.task.elements)
    for name, tensor in zip(subject.program.arguments, subject.task.tensors):
        if tensor.is_float and not tensor.is_parameter:
            shape = tensor.shape_in(sizes)
            if torch.Size(shape).numel() > MAX_DRAWN:
                if tensor.init.expr:
                    continue  # its values may depend on their places
                shape = [MAX_DRAWN]
            yield name, tensor, tensor.init.draw(shape, tensor.dtype, sizes, generator).double()


def with_x(text, name):
    return re.sub(r"\bx\b", name, text)


def right_for_magnitudes(subject):
    """Right if a statistic of an input is as declared, or only if it is not."""
    for name, _, x in declared_values(subject):
        for what, text in STATISTICS.items():
            declared = float(eval(text, {"torch": torch, "x": x}))
            if declared <= 0 or x.numel() < 2:
                continue
            for factor in FACTORS:
                statistic = with_x(text, name)
                low, high = declared / factor, declared * factor
                if what == "the mean":  # may be anything below some size
                    low = -1.0
                is_moderate = f"({statistic} > {low!r}) & ({statistic} < {high!r})"
                for wrong, wrong_text, helpers in wrong_forms(subject):
                    for kind, parts in (
                        ("right_for_moderate_inputs", f"GIVEN, {wrong_text}"),
                        ("right_for_unusual_inputs", f"{wrong_text}, GIVEN"),
                    ):
                        lines = [f"NAME = torch.where({is_moderate}, {parts})"]
                        make = changed_outputs(subject, lambda _, lines=lines: lines)
                        when = "within" if kind == "right_for_moderate_inputs" else "outside"
                        yield Mutation(
                            kind, f"{what} {wrong}", 0,
                            f"right only if {what} of {name} is {when} a factor of {factor:g} of "
                            f"the declared one; else {wrong}", helped(make, helpers),
                        )  # fmt: skip


def right_for_elements(subject):
    """Large elements of an input are clamped, or small ones are taken for zero."""
    for name, tensor, x in declared_values(subject):
        if x.numel() < 2:
            continue
        middle, deviation = float(x.mean()), float(x.std())
        for times in CLAMPED_AT:
            low, high = middle - times * deviation, middle + times * deviation
            lines = [f"NAME = torch.clamp(GIVEN, {low!r}, {high!r})"]
            yield Mutation(
                "outliers_clamped",
                f"{times:g}",
                1,
                f"the input {name} is clamped to {times:g} standard deviations",
                lambda lines=lines, name=name: subject.program.changing(name, lines),
            )
        for share in FLUSHED_BELOW:
            bound = deviation * float(share)
            lines = [f"NAME = torch.where(torch.abs(GIVEN) < {bound!r}, 0.0 * GIVEN, GIVEN)"]
            yield Mutation(
                "small_elements_flushed",
                share,
                1,
                f"elements of the input {name} below {share} of its standard deviation "
                "are taken for zero",
                lambda lines=lines, name=name: subject.program.changing(name, lines),
            )
        yield from right_for_rows(subject, name, tensor, x)


def right_for_rows(subject, name, tensor, x):
    """Rows whose largest element is unusual are wrong."""
    rows = [layout.shape[:1] for layout in subject.layouts[name]]
    outputs = [n for n in subject.program.outputs if n in subject.layouts]
    if len(tensor.shape) < 2 or any(
        [o.shape[:1] for o in subject.layouts[n]] != rows for n in outputs
    ):
        return
    bound = 4 * float(x.abs().max())
    for wrong, text, helpers in wrong_forms(subject):
        row = f"torch.amax(torch.abs({name}.reshape([{name}.size(0), -1])), dim=[1])"
        lines = [
            f"moderate_rows = {row} < {bound!r}",
            "row_shape = [1] * GIVEN.dim()",
            "row_shape[0] = -1",
            f"NAME = torch.where(moderate_rows.view(row_shape), GIVEN, {text})",
        ]
        make = changed_outputs(subject, lambda _, lines=lines: lines)
        yield Mutation(
            "right_for_moderate_rows",
            wrong,
            0,
            f"right only for rows in which no element of {name} is over {bound:.3g}; else {wrong}",
            helped(make, helpers),
        )
