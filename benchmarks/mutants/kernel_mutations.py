"""Mutations of the kernels of an honest document, on the tokens of its cuda block.

Each function yields (kind, operator, position, description, text of the block).
"""

import ast
import functools
import re

import kernel_expressions
from cuda_tokens import Source
from kernel_expressions import EXTREMES, UPDATES
from subject import Mutation

SHUFFLES = {"__shfl_xor_sync", "__shfl_down_sync", "__shfl_up_sync", "__shfl_sync"}
COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}


def mutations(document):
    """Yields the mutations of a document's cuda block and of its launches."""
    if "cuda" not in document.blocks or "python" not in document.blocks:
        return
    source = Source(document.blocks["cuda"])
    control_flow = (comparisons, loops, tails, barriers, steps, shuffles, guards)
    for family in (*control_flow, *kernel_expressions.FAMILIES):
        for kind, operator, at, description, text in family(source):
            make = functools.partial(document.text, cuda=text)
            yield Mutation(kind, operator, source.line(at), description, make)
    yield from grids(document)


def conditions(source):
    """Yields (begin, end) of the condition of each `if`, `while` and `for`."""
    for i in range(len(source)):
        if source[i] in {"if", "while"} and source[i + 1] == "(" and i + 1 in source.partner:
            yield i + 2, source.partner[i + 1]
    for _, first, second, _ in source.loops():
        yield first + 1, second


def part_end(source, at, end):
    """Returns the end of the operand that begins at `at`, before && or ||."""
    while at < end and source[at] not in {"&&", "||", "?", ","}:
        at = source.partner.get(at, at) + 1 if source[at] in {"(", "["} else at + 1
    return at


def comparisons(source):
    for begin, end in conditions(source):
        for i in range(begin, end):
            if source[i] not in COMPARISONS:
                continue
            last = part_end(source, i + 1, end)
            text, bound = source.span(begin, end), source.span(i + 1, last)
            yield (
                "bound_changed",
                source[i],
                i,
                f"`{text}` has {COMPARISONS[source[i]]}",
                source.replaced(i, i + 1, COMPARISONS[source[i]]),
            )
            for by in ("- 1", "+ 1"):
                yield (
                    "bound_changed",
                    by,
                    i,
                    f"`{text}` compares with {bound} {by}",
                    source.replaced(i + 1, last, f"({bound}) {by}"),
                )


def loops(source):
    for i, first, second, closing in source.loops():
        head = source.span(i, closing + 1)
        if source[first - 1] == "0" and source[first - 2] == "=":
            yield (
                "loop_changed",
                "start",
                i,
                f"`{head}` begins with 1",
                source.replaced(first - 1, first, "1"),
            )
        step = source.span(second + 1, closing)
        increment = re.fullmatch(r"\+\+\s*(\w+)|(\w+)\s*\+\+", step)
        addition = re.fullmatch(r"(\w+)\s*\+=\s*(.*)", step, re.DOTALL)
        doubled = None
        if increment:
            doubled = f"{increment[1] or increment[2]} += 2"
        elif addition:
            doubled = f"{addition[1]} += 2 * ({addition[2]})"
        if doubled:
            yield (
                "loop_changed",
                "step",
                i,
                f"`{head}` steps by `{doubled}`",
                source.replaced(second + 1, closing, doubled),
            )
        for at in range(first + 1, second):
            if source[at] in {"<", "<="} and source[second - 1] != ">":
                bound = source.span(at + 1, second)
                yield (
                    "loop_changed",
                    "end",
                    i,
                    f"`{head}` ends at half of {bound}",
                    source.replaced(at + 1, second, f"({bound}) / 2"),
                )
                break


def tails(source):
    """Loops over what another loop has left are dropped."""
    for i, first, _, closing in source.loops():
        init = source.span(i + 2, first)
        end = source.statement_end(closing + 1)
        if init == "" or re.search(r"/|&\s*~|\b[A-Za-z_]\w*4\b|tail|rest", init):
            yield (
                "tail_dropped",
                "loop",
                i,
                f"`{source.span(i, closing + 1)}` does nothing",
                source.replaced(i, end, ";"),
            )


def barriers(source):
    for name in ("__syncthreads", "__syncwarp"):
        for i in source.find(name):
            if source[i + 1] == "(":
                yield (
                    "barrier_removed",
                    name,
                    i,
                    f"{name}() is left out",
                    source.replaced(i, source.partner[i + 1] + 1, ""),
                )


def steps(source):
    """Statements that update a value are left out."""
    for i in range(len(source)):
        is_update = source[i] in UPDATES or (
            source[i] == "=" and source[i + 1] in EXTREMES and source[i + 3] == source[i - 1]
        )
        if not is_update or any(a < i < d for a, _, _, d in source.loops()):
            continue
        first = source.statement_begin(i)
        end = source.statement_end(first)
        yield (
            "step_dropped",
            source[i],
            i,
            f"`{source.span(first, end)}` is left out",
            source.replaced(first, end, ";"),
        )


def shuffles(source):
    positions = [i for name in SHUFFLES for i in source.find(name) if source[i + 1] == "("]
    for i in sorted(positions):
        closing = source.partner[i + 1]
        whole = source.span(i, closing + 1)
        yield (
            "shuffle_changed",
            "value",
            i,
            f"`{whole}` is the lane's own value",
            source.replaced(i, closing + 1, f"({argument(source, i + 2, closing, 1)})"),
        )
        begin, end = bounds_of_argument(source, i + 2, closing, 2)
        yield (
            "shuffle_changed",
            "offset",
            i,
            f"`{whole}` has another offset",
            source.replaced(begin, end, f"({source.span(begin, end)}) ^ 1"),
        )
    for i, first, second, closing in source.loops():
        body = source.span(closing + 1, source.statement_end(closing + 1))
        if not any(name in body for name in SHUFFLES):
            continue
        head = source.span(i, closing + 1)
        start = source[first - 1]
        if start.isdigit() and int(start) > 1:
            yield (
                "shuffle_changed",
                "first step",
                i,
                f"`{head}` begins with half of {start}",
                source.replaced(first - 1, first, str(int(start) // 2)),
            )
        if source.span(second - 2, second) in {"> 0", ">0"}:
            yield (
                "shuffle_changed",
                "last step",
                i,
                f"`{head}` leaves out the last step",
                source.replaced(second - 1, second, "1"),
            )


def bounds_of_argument(source, begin, closing, number):
    """Returns (begin, end) of an argument of a call."""
    at = begin
    for _ in range(number):
        at = next_comma(source, at, closing) + 1
    return at, next_comma(source, at, closing)


def next_comma(source, at, closing):
    while at < closing and source[at] != ",":
        at = source.partner.get(at, at) + 1 if source[at] in {"(", "["} else at + 1
    return at


def argument(source, begin, closing, number):
    return source.span(*bounds_of_argument(source, begin, closing, number))


def guards(source):
    for i in source.find("if"):
        if source[i + 1] != "(" or i + 1 not in source.partner:
            continue
        closing = source.partner[i + 1]
        head = source.span(i, closing + 1)
        if source[closing + 1] == "return" and source[closing + 2] == ";":
            yield (
                "guard_removed",
                "return",
                i,
                f"`{head} return;` is left out",
                source.replaced(i, closing + 3, ""),
            )
        elif source[source.statement_end(closing + 1)] != "else":
            yield (
                "guard_removed",
                "if",
                i,
                f"`{head}` is left out",
                source.replaced(i, closing + 1, ""),
            )


def grids(document):
    """Launches with a block less in one dimension of the grid."""
    text = document.blocks["python"]
    tree = ast.parse(text)
    assigned = {
        node.targets[0].id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        is_launch = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "launch"
        if not is_launch or len(node.args) < 3:
            continue
        grid = node.args[1]
        if isinstance(grid, ast.Name):
            grid = assigned.get(grid.id)
        if not isinstance(grid, ast.List):
            continue
        for size in grid.elts:
            if isinstance(size, ast.Constant) and size.value == 1:
                continue
            old = ast.get_source_segment(text, size)
            lines = text.splitlines(keepends=True)
            begin = sum(len(line) for line in lines[: size.lineno - 1]) + size.col_offset
            new = text[:begin] + f"({old}) - 1" + text[begin + len(old) :]
            yield Mutation(
                "grid_smaller",
                "launch",
                size.lineno,
                f"the grid has {old} - 1 blocks in a dimension",
                functools.partial(document.text, python=new),
            )
