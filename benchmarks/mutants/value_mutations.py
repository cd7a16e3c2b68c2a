"""Mutations of inputs, parameters, intermediate values and outputs.

They are replaced, as a whole or in some slices, scaled, or missing at an edge.
"""

import functools

from subject import Mutation

# Returns x with the slices of dimension d zeroed, or copied from the slice `back` before, that
# `kept` excludes.
ZEROED = """\
def zeroed(x: Tensor, d: int, kept: Tensor) -> Tensor:
    shape = [1] * x.dim()
    shape[d] = x.size(d)
    return torch.where(kept.view(shape), x, torch.zeros_like(x))
"""
COPIED = """\
def copied(x: Tensor, d: int, kept: Tensor, back: int) -> Tensor:
    place = torch.arange(x.size(d))
    source = torch.where(kept, place, (place + x.size(d) - back) % x.size(d))
    return torch.index_select(x, d, source)
"""
# Slices that are computed, with the distance to the slice that a skipped one copies.
# Every pattern skips one slice at least if there are two.
PATTERNS = {
    "the second half": ("torch.arange(slices) < (slices + 1) // 2", "(slices + 1) // 2"),
    "the last eighth": (
        "torch.arange(slices) < slices - max(slices // 8, 1)",
        "max(slices // 8, 1)",
    ),
    "the last 64th": (
        "torch.arange(slices) < slices - max(slices // 64, 1)",
        "max(slices // 64, 1)",
    ),
    "every second": ("torch.arange(slices) % 2 == 0", "1"),
    "every 16th": ("torch.arange(slices) % 16 != 1", "1"),
}
EDGES = {
    "the last": ("torch.arange(slices) < slices - 1", "1"),
    "the first": ("torch.arange(slices) > 0", "slices - 1"),
}
# Replacements of a floating-point tensor.
WHOLE = {
    "zeros": "torch.zeros_like(GIVEN)",
    "ones": "torch.ones_like(GIVEN)",
    "its mean": "torch.mean(GIVEN).expand_as(GIVEN).contiguous()",
    "0.5": "torch.full_like(GIVEN, 0.5)",
    "its square": "GIVEN * GIVEN",
    "its magnitude": "torch.abs(GIVEN)",
}
SCALES = ("1e-5", "1e-4", "1e-3")


def mutations(subject):
    program = subject.program
    for name in program.arguments:
        kind = "parameter" if name in subject.parameters else "input"
        yield from replacements(subject, kind, name)
    for name in subject.values():
        yield from replacements(subject, "value", name)
        yield from scaled(subject, name)
    for number in range(len(program.outputs)):
        yield from outputs(subject, number)


def change(subject, kind, operator, name, description, lines, helpers=()):
    """Returns the mutation that changes a value. lines: as Program.changing() takes them."""

    def make():
        return subject.program.changing(name, lines).with_helpers(*helpers)

    return Mutation(kind, operator, subject.line_of(name), description, make)


def slices_lines(d, pattern, copies):
    """Returns the statements that skip slices of a dimension, and the function that they call."""
    kept, back = pattern
    lines = [f"slices = GIVEN.size({d})", f"kept_slices = {kept}"]
    if copies:
        return [*lines, f"NAME = copied(GIVEN, {d}, kept_slices, {back})"], COPIED
    return [*lines, f"NAME = zeroed(GIVEN, {d}, kept_slices)"], ZEROED


def replacements(subject, kind, name):
    """Yields replacements of an argument or of an intermediate value."""
    role = subject.role(name)
    if subject.is_float(name):
        for what, text in WHOLE.items():
            yield change(
                subject,
                f"{kind}_replaced",
                what,
                name,
                f"{what} instead of {role}",
                [f"NAME = {text}"],
            )
    elif kind == "input":
        yield change(
            subject,
            "input_replaced",
            "zeros",
            name,
            f"zeros instead of {role}",
            ["NAME = torch.zeros_like(GIVEN)"],
        )
    yield from other_tensors(subject, kind, name)
    for d in subject.dims(name):
        yield change(
            subject,
            f"{kind}_replaced",
            "another slice",
            name,
            f"every slice of dimension {d} of {role} is its neighbor",
            [f"NAME = torch.roll(GIVEN, [1], [{d}])"],
        )
        yield change(
            subject,
            f"{kind}_replaced",
            "the first slice",
            name,
            f"every slice of dimension {d} of {role} is the first",
            [f"NAME = GIVEN.narrow({d}, 0, 1).expand_as(GIVEN).contiguous()"],
        )
        for patterns, suffix in ((PATTERNS, "slices_skipped"), (EDGES, "edge_dropped")):
            for where, pattern in patterns.items():
                for copies in (False, True):
                    lines, helper = slices_lines(d, pattern, copies)
                    how = "copied from others" if copies else "zero"
                    yield change(
                        subject,
                        f"{kind}_{suffix}",
                        f"{where} {how}",
                        name,
                        f"{where} of the slices of dimension {d} of {role} are {how}",
                        lines,
                        (helper,),
                    )


def other_tensors(subject, kind, name):
    """Yields replacements of a value by an argument of the same layout."""
    for other in subject.program.arguments:
        if other != name and subject.are_alike(other, name):
            yield change(
                subject,
                f"{kind}_replaced",
                "another tensor",
                name,
                f"{other} instead of {subject.role(name)}",
                [f"NAME = {other}"],
            )


def scaled(subject, name):
    """Yields intermediate values with a small relative error."""
    if not subject.is_float(name):
        return
    for by in SCALES:
        yield change(
            subject,
            "value_scaled",
            by,
            name,
            f"{subject.role(name)} times 1 + {by}",
            [f"NAME = GIVEN * (1.0 + {by})"],
        )


def outputs(subject, number):
    """Yields mutations of an output behind all its other uses."""
    program, name = subject.program, subject.program.outputs[number]
    if name not in subject.layouts:
        return
    line = subject.line_of(name)
    role = f"output {number}" if len(program.outputs) > 1 else "the output"

    def change_output(kind, operator, description, lines, helpers=()):
        make = functools.partial(with_output, program, number, lines, helpers)
        return Mutation(kind, operator, line, description, make)

    whole = {
        "zeros": "torch.zeros_like(GIVEN)",
        "ones": "torch.ones_like(GIVEN)",
        "its first element": "GIVEN.reshape([-1]).narrow(0, 0, 1).expand([GIVEN.numel()])"
        ".contiguous().view(GIVEN.shape)",
    }
    if subject.is_float(name):
        whole["its mean"] = "torch.mean(GIVEN).expand_as(GIVEN).contiguous()"
        whole["its magnitude"] = "torch.abs(GIVEN)"
    for what, text in whole.items():
        yield change_output("output_constant", what, f"{role} is {what}", [f"NAME = {text}"])
    yield change_output("output_stale", "memory", f"{role} is stale memory", stale(subject, name))
    if subject.is_float(name):
        for by in SCALES:
            yield change_output(
                "output_scaled", by, f"{role} times 1 + {by}", [f"NAME = GIVEN * (1.0 + {by})"]
            )
    for d in subject.dims(name):
        for what, text in {
            "the first slice": f"GIVEN.narrow({d}, 0, 1).expand_as(GIVEN).contiguous()",
            "its mean": f"torch.mean(GIVEN, dim=[{d}], keepdim=True).expand_as(GIVEN).contiguous()",
        }.items():
            if what == "its mean" and not subject.is_float(name):
                continue
            yield change_output(
                "output_constant",
                f"{what} over a dimension",
                f"{role} is {what} over dimension {d}",
                [f"NAME = {text}"],
            )
        for patterns, kind in ((PATTERNS, "output_slices_skipped"), (EDGES, "output_edge_dropped")):
            for where, pattern in patterns.items():
                for copies in (False, True):
                    lines, helper = slices_lines(d, pattern, copies)
                    how = "copied from others" if copies else "zero"
                    yield change_output(
                        kind,
                        f"{where} {how}",
                        f"{where} of the slices of dimension {d} of {role} are {how}",
                        lines,
                        (helper,),
                    )


def stale(subject, name):
    """Returns statements that make an output of memory that nothing has written.

    Values of the same layout are held, because the memory of one may hold the right result.
    """
    held = [n for n in subject.values() if subject.are_alike(n, name)]
    return [
        "NAME = torch.empty_like(GIVEN)",
        f"held = [{', '.join(['GIVEN', *held])}]\nif len(held) > 1000:\n    NAME = held[0]",
    ]


def with_output(program, number, lines, helpers):
    return program.changing_output(number, lines).with_helpers(*helpers)
