"""Mutations of precision: operands, results or all values have fewer digits than declared.

The emulations work on values and not on bits, so they do the same in float64.
"""

import ast
import re

from operator_mutations import described, edit
from operator_tables import BIASED
from program import substituted
from subject import Mutation

ROUNDED = """\
def rounded(x: Tensor, bits: int) -> Tensor:
    digits, exponent = torch.frexp(x)
    return torch.ldexp(torch.round(digits * 2.0 ** bits) / 2.0 ** bits, exponent).to(x.dtype)
"""
TRUNCATED = """\
def truncated(x: Tensor, bits: int) -> Tensor:
    digits, exponent = torch.frexp(x)
    return torch.ldexp(torch.trunc(digits * 2.0 ** bits) / 2.0 ** bits, exponent).to(x.dtype)
"""
HALF_UP = """\
def half_up(x: Tensor, bits: int) -> Tensor:
    digits, exponent = torch.frexp(x)
    up = torch.floor(digits * 2.0 ** bits + 0.5) / 2.0 ** bits
    return torch.ldexp(up, exponent).to(x.dtype)
"""
FIXED = """\
def fixed(x: Tensor, bits: int) -> Tensor:
    step = (torch.amax(torch.abs(x)) + 1e-30) / 2.0 ** (bits - 1)
    return torch.round(x / step) * step
"""
PIECES = """\
def high(x: Tensor) -> Tensor:
    return x.to(torch.bfloat16).to(x.dtype)
def low(x: Tensor) -> Tensor:
    return high(x - high(x))
"""
# Formats: an expression over x, and the function that it calls.
FORMATS = {
    "float16": ("x.to(torch.float16).to(x.dtype)", None),
    "bfloat16": ("x.to(torch.bfloat16).to(x.dtype)", None),
    "fp8 e4m3": ("rounded(x, 4)", ROUNDED),
    "TF32": ("rounded(x, 11)", ROUNDED),
    "truncated TF32": ("truncated(x, 11)", TRUNCATED),
    "14 bits": ("rounded(x, 14)", ROUNDED),
    "16 bits": ("rounded(x, 16)", ROUNDED),
    "18 bits": ("rounded(x, 18)", ROUNDED),
    "20 bits": ("rounded(x, 20)", ROUNDED),
    "fixed point of 16 bits": ("fixed(x, 16)", FIXED),
    "fixed point of 20 bits": ("fixed(x, 20)", FIXED),
    "two pieces of bfloat16": ("high(x) + low(x)", PIECES),
}
OUTPUT_FORMATS = FORMATS | {
    "half up to 12 bits": ("half_up(x, 12)", HALF_UP),
    "half up to 18 bits": ("half_up(x, 18)", HALF_UP),
    "truncated to 16 bits": ("truncated(x, 16)", TRUNCATED),
    "truncated to 20 bits": ("truncated(x, 20)", TRUNCATED),
}
# Formats that partial sums are kept in.
SUM_FORMATS = ("float16", "bfloat16", "TF32", "16 bits")
PRODUCTS = {
    "matmul",
    "bmm",
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "mul",
}


def mutations(subject):
    for index, operation in enumerate(subject.operations):
        targets = subject.program.statements[index].targets
        if len(targets) == 1 and targets[0] in subject.layouts and operation.name:
            yield from rounded_operands(subject, index, operation)
            yield from products_of_pieces(subject, index, operation)
            yield from rounded_sums(subject, index, operation)
    yield from rounded_values(subject)
    for what, (text, helper) in FORMATS.items():
        yield everything_rounded(subject, what, text, helper)


def applied(text, name):
    """Returns a format's expression for a value."""
    return re.sub(r"\bx\b", lambda _: name, text)


def floats_of(subject, operation):
    """Returns the names of an operation's floating-point operands."""
    names = [o.id for o in operation.operands if subject.is_tensor(o)]
    return [n for n in dict.fromkeys(names) if subject.is_float(n)]


def rounded_operands(subject, index, operation):
    """One operator whose operands have fewer digits, as on tensor cores."""
    names = floats_of(subject, operation)
    if not names:
        return
    for what, (text, helper) in FORMATS.items():
        value = substituted(operation.node, {name: applied(text, name) for name in names})
        yield helped(
            edit(
                subject,
                "operands_rounded",
                f"{operation.base} {what}",
                index,
                f"the operands of {described(subject, index)} are rounded to {what}",
                value,
            ),
            helper,
        )


def helped(mutation, *helpers):
    """Returns the mutation with the functions that its text calls."""
    make = mutation.make
    mutation.make = lambda: make().with_helpers(*(h for h in helpers if h is not None))
    return mutation


def bias_of(subject, operation):
    """Returns the substitution that leaves out an operator's bias."""
    if operation.base in BIASED:
        operand = operation.operand(*BIASED[operation.base])
        if operand is not None and subject.is_tensor(operand):
            return {operand.id: "None"}
    return {}


def products_of_pieces(subject, index, operation):
    """A product of two values in two pieces of bfloat16 each, without the product of low pieces."""
    if operation.base not in PRODUCTS or len(operation.operands) < 2:
        return
    first, second = operation.operands[:2]
    if not (subject.is_tensor(first) and subject.is_tensor(second)) or first.id == second.id:
        return

    def product(a, b, others):
        pieces = {first.id: f"{a}({first.id})", second.id: f"{b}({second.id})"}
        return f"({substituted(operation.node, pieces | others)})"

    bias = bias_of(subject, operation)
    whole, high_low = product("high", "high", {}), product("high", "low", bias)
    value = f"{whole} + ({high_low} + {product('low', 'high', bias)})"
    yield helped(
        edit(
            subject,
            "product_of_pieces",
            operation.base,
            index,
            f"{described(subject, index)} is a product of two bfloat16 pieces of each operand",
            value,
        ),
        PIECES,
    )
    value = f"{whole} + {high_low}"
    yield helped(
        edit(
            subject,
            "product_of_pieces",
            f"{operation.base} two",
            index,
            f"{described(subject, index)} takes two bfloat16 pieces of one operand and "
            "one of the other",
            value,
        ),
        PIECES,
    )


def rounded_sums(subject, index, operation):
    """Partial sums over both halves that are rounded before they are added."""
    base, operands = operation.base, operation.operands
    if base not in {"matmul", "linear", "sum", "mean"} or not subject.is_tensor(operands[0]):
        return
    if base in {"matmul", "linear"}:
        if len(operands) < 2 or not subject.is_tensor(operands[1]):
            return
        inner = -1 if base == "linear" or subject.rank(operands[1].id) == 1 else -2
        parts = [(operands[0].id, -1), (operands[1].id, inner)]
    else:
        dims = operation.operand(1, "dim")
        if not isinstance(dims, ast.List):
            return
        parts = [(operands[0].id, ast.unparse(dims.elts[0]))]
    halves = []
    for begin, length in (("0", "half_size"), ("half_size", "whole_size - half_size")):
        narrowed = {name: f"{name}.narrow({d}, {begin}, {length})" for name, d in parts}
        others = {} if begin == "0" else bias_of(subject, operation)
        part = substituted(operation.node, narrowed | others)
        halves.append(f"({part} * (({length}) / whole_size))" if base == "mean" else f"({part})")
    lines = [
        f"whole_size = {parts[0][0]}.size({parts[0][1]})",
        "half_size = (whole_size + 1) // 2",
    ]
    for what in SUM_FORMATS:
        rounding, helper = FORMATS[what]
        value = " + ".join(f"({applied(rounding, half)})" for half in halves)
        mutation = edit(
            subject,
            "sums_rounded",
            f"{base} {what}",
            index,
            f"the sums of both halves of {described(subject, index)} are rounded to {what}",
            value,
        )

        def make(value=value):
            return subject.program.with_value(index, value).with_lines(index, lines)

        mutation.make = make
        yield helped(mutation, helper)


def rounded_values(subject):
    """Arguments, intermediate values and outputs with fewer digits."""
    program = subject.program
    for name in [*program.arguments, *subject.values()]:
        if not subject.is_float(name):
            continue
        kind = "value"
        if name in program.arguments:
            kind = "parameter" if name in subject.parameters else "input"
        for what, (text, helper) in FORMATS.items():
            lines = [f"NAME = {applied(text, 'GIVEN')}"]

            def make(name=name, lines=lines):
                return program.changing(name, lines)

            yield helped(
                Mutation(
                    f"{kind}_rounded",
                    what,
                    subject.line_of(name),
                    f"{subject.role(name)} is rounded to {what}",
                    make,
                ),
                helper,
            )
    for number, name in enumerate(program.outputs):
        if name not in subject.layouts or not subject.is_float(name):
            continue
        for what, (text, helper) in OUTPUT_FORMATS.items():
            lines = [f"NAME = {applied(text, 'GIVEN')}"]

            def make(number=number, lines=lines):
                return program.changing_output(number, lines)

            yield helped(
                Mutation(
                    "output_rounded",
                    what,
                    subject.line_of(name),
                    f"output {number} is rounded to {what}",
                    make,
                ),
                helper,
            )


def everything_rounded(subject, what, text, helper):
    """Every floating-point value with fewer digits."""

    def make():
        program = subject.program
        values = subject.values() + subject.program.outputs
        for name in dict.fromkeys([*program.arguments, *values]):
            if name in subject.layouts and subject.is_float(name):
                program = program.changing(name, [f"NAME = {applied(text, 'GIVEN')}"])
        return program

    return helped(
        Mutation("everything_rounded", what, 1, f"all values are rounded to {what}", make), helper
    )
