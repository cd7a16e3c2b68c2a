"""Mutations of a reference's operators: dropped, replaced, in another order, with other numbers."""

import ast
import functools
import re

import operator_tables as tables
from program import substituted
from subject import Mutation, number_of

SMALL_CONSTANT = 1e-2  # up to here a constant is taken for an eps
NUDGES = ("1e-5", "1e-4", "1e-3")


def filled(text, **names):
    """Replaces the letters of a table's expression that stand alone."""
    pattern = re.compile(r"(?<![\w.])(" + "|".join(names) + r")(?!\w)")
    return pattern.sub(lambda found: names[found[1]], text)


def mutations(subject):
    """Yields the mutations of all operators."""
    for index, operation in enumerate(subject.operations):
        targets = subject.program.statements[index].targets
        if not operation.name or len(targets) != 1:
            continue
        for family in (
            dropped,
            without_operand,
            replaced,
            renamed,
            unstable,
            with_swapped_operands,
            with_another_dimension,
            with_other_numbers,
            exchanged,
        ):
            yield from family(subject, index, operation)


def edit(subject, kind, operator, index, description, value):
    """Returns the mutation that gives a statement another value."""
    line = subject.program.statements[index].line
    make = functools.partial(subject.program.with_value, index, value)
    return Mutation(kind, operator, line, description, make)


def described(subject, index):
    return f"`{subject.program.statements[index].text}`"


def kind_of_drop(subject, operation, dropped_operands):
    base = operation.base
    if base in tables.CLAMPS:
        return "clamp_dropped"
    if base in tables.MASKS:
        return "mask_dropped"
    if base in {"add", "sub"} and any(
        isinstance(o, ast.Name) and o.id in subject.parameters for o in dropped_operands
    ):
        return "bias_dropped"
    if base in {"mul", "div"} and any(number_of(o) is not None for o in dropped_operands):
        return "scale_dropped"
    return "operator_dropped"


def dropped(subject, index, operation):
    """The result is one of the operands."""
    target = subject.program.statements[index].targets[0]
    if target not in subject.layouts:
        return
    for operand in operation.operands:
        if not subject.is_tensor(operand) or not subject.are_alike(operand.id, target):
            continue
        others = [o for o in operation.operands if o is not operand]
        kind = kind_of_drop(subject, operation, others)
        yield edit(
            subject,
            kind,
            operation.base,
            index,
            f"{described(subject, index)} is only {operand.id}",
            operand,
        )


def without_operand(subject, index, operation):
    """An operator without a bias or a weight that it takes as an operand."""
    for kind, table in (("bias_dropped", tables.BIASED), ("scale_dropped", tables.SCALED)):
        if operation.base not in table:
            continue
        number, keyword = table[operation.base]
        operand = operation.operand(number, keyword)
        if not subject.is_tensor(operand):
            continue
        value = substituted(operation.node, {operand.id: "None"})
        yield edit(
            subject,
            kind,
            operation.base,
            index,
            f"{described(subject, index)} without {operand.id}",
            value,
        )


def replaced(subject, index, operation):
    """Another operator on the same operands."""
    base, operands = operation.base, [ast.unparse(o) for o in operation.operands]
    choices = []
    if base in tables.UNARY and operands and subject.is_tensor(operation.operands[0]):
        choices = [filled(text, x=operands[0]) for text in tables.UNARY[base]]
    elif base in tables.BINARY and len(operands) == 2:
        both = all(subject.is_tensor(o) for o in operation.operands)
        choices = [
            filled(text, x=operands[0], y=operands[1])
            for text in tables.BINARY[base]
            if both or "torch." not in text
        ]
    for value in choices:
        yield edit(
            subject,
            "operator_replaced",
            base,
            index,
            f"{described(subject, index)} computes `{value}` instead",
            value,
        )


def renamed(subject, index, operation):
    """Another operator that takes the same operands."""
    for name in tables.NAMES.get(operation.base, []):
        text = ast.unparse(operation.node)
        value = re.sub(rf"\.{operation.name}\(", f".{name}(", text, count=1)
        if name == "amax" and "dim" not in operation.keywords and len(operation.operands) < 2:
            continue
        yield edit(
            subject,
            "operator_replaced",
            operation.base,
            index,
            f"{described(subject, index)} computes `{value}` instead",
            value,
        )


def dimension_of(operation):
    """Returns the one dimension that an operator works on as text, or None."""
    number = tables.DIMENSIONS.get(operation.base)
    node = None if number is None else operation.operand(number, "dim")
    if isinstance(node, ast.List) and len(node.elts) == 1:
        node = node.elts[0]
    return None if node is None or number_of(node) is None else ast.unparse(node)


def unstable(subject, index, operation):
    """A form that is equal in exact arithmetic only."""
    text = tables.UNSTABLE.get(operation.base)
    if text is None or not operation.operands or not subject.is_tensor(operation.operands[0]):
        return
    keep = operation.operand(2, "keepdim")
    names = {"x": operation.operands[0].id, "K": ast.unparse(keep) if keep else "False"}
    if re.search(r"\bD\b", text):
        names["D"] = dimension_of(operation)
        if names["D"] is None:
            return
    value = filled(text, **names)
    yield edit(
        subject,
        "unstable_form",
        operation.base,
        index,
        f"{described(subject, index)} is computed as `{value}`",
        value,
    )


def with_swapped_operands(subject, index, operation):
    """y - x for x - y."""
    if operation.base not in {"sub", "div", "pow", "matmul", "lt", "gt", "le", "ge"}:
        return
    if len(operation.operands) != 2:
        return
    first, second = (ast.unparse(o) for o in operation.operands)
    symbols = {"sub": "-", "div": "/", "pow": "**", "matmul": "@",
               "lt": "<", "gt": ">", "le": "<=", "ge": ">="}  # fmt: skip
    value = f"{second} {symbols[operation.base]} {first}"
    yield edit(
        subject,
        "operands_swapped",
        operation.base,
        index,
        f"{described(subject, index)} computes `{value}`",
        value,
    )


def with_another_dimension(subject, index, operation):
    """The same operator over another dimension."""
    known = dimension_of(operation)
    if known is None or not subject.is_tensor(operation.operands[0]):
        return
    rank = subject.rank(operation.operands[0].id)
    for d in range(rank):
        if d == int(known) % rank:
            continue
        text = ast.unparse(operation.node)
        value = re.sub(rf"(dim=\[?|, \[?){re.escape(known)}\b", rf"\g<1>{d}", text, count=1)
        yield edit(
            subject,
            "dimension_changed",
            operation.base,
            index,
            f"{described(subject, index)} works on dimension {d}",
            value,
        )


def with_other_numbers(subject, index, operation):
    """Other constants: an eps left out, a factor changed."""
    target = subject.program.statements[index].targets[0]
    if target not in subject.layouts:
        return
    for node in ast.walk(operation.node):
        number = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(number, float) or number == 0 or number != number:
            continue
        if abs(number) <= SMALL_CONSTANT:
            changes = [("eps_dropped", "0", 0.0), ("eps_changed", "10", 10 * number)]
        else:
            changes = [("constant_nudged", n, number * (1 + float(n))) for n in NUDGES]
            changes.append(("constant_changed", "2", 2 * number))
            changes.append(("constant_changed", "sign", -number))
        for kind, operator, value in changes:
            yield edit(
                subject,
                kind,
                f"{operation.base} {operator}",
                index,
                f"{described(subject, index)} has {value!r} for {number!r}",
                with_number(operation.node, node, value),
            )


def with_number(tree, node, value):
    """Returns an expression with another value for one of its constants."""
    old = node.value
    node.value = value
    text = ast.unparse(tree)
    node.value = old
    return text


def reads_of(node, name):
    return sum(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))


def exchanged(subject, index, operation):
    """Two operators in the other order: g(f(x)) for f(g(x)), with the other operands of each."""
    statements = subject.program.statements
    name = statements[index].targets[0]
    users = [i for i, s in enumerate(statements) if name in s.names()]
    source = next((o for o in operation.operands if subject.is_tensor(o)), None)
    if len(users) != 1 or name in subject.program.outputs or source is None:
        return
    after = users[0]
    second = subject.operations[after]
    targets = statements[after].targets
    if not second.name or len(targets) != 1 or name not in subject.layouts:
        return
    if targets[0] not in subject.layouts or not subject.are_alike(name, targets[0]):
        return
    if not subject.are_alike(source.id, name) or reads_of(second.node, name) != 1:
        return

    def make():
        first = substituted(second.node, {name: source.id})
        last = substituted(operation.node, {source.id: name})
        # The definitions of the second operator's other operands may lie between both.
        program = subject.program.with_value(after, last)
        program.statements.pop(index)
        return program.with_lines(after - 1, [f"{name} = {first}"])

    yield Mutation(
        "operators_exchanged", f"{operation.base} {second.base}", statements[index].line,
        f"{described(subject, index)} comes behind {described(subject, after)}", make,
    )  # fmt: skip
