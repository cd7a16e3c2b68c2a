"""Prints a variant as a document, and says what it does and why."""

from calls import CONVOLUTIONS, TRANSPOSED, has_channels_last
from moves import settings

KINDS = {
    "elements": "one pass over the elements",
    "rows": "reductions and what follows them, row by row",
    "scan": "running totals along a dimension",
}


def document(task, device, reference, moves, program):
    operators = [s.operator for s in getattr(reference, "statements", [])]
    heavy = [o for o in operators if o in CONVOLUTIONS or o in TRANSPOSED]
    if program is None:
        code, cuda, calls = task["reference"].strip() + "\n", "", len(operators)
    else:
        code, cuda = program.python_block(), program.cuda_block()
        calls = sum("launch(" in line or "torch." in line for line in program.lines)
    lines = settings(moves, task, device, calls, bool(heavy))
    blocks = ""
    if lines:
        blocks += "```toml\n" + "\n".join(lines) + "\n```\n"
    if cuda:
        blocks += f"```cuda\n{cuda}```\n"
    return (
        f"## Performance Analysis\n{analysis(operators, program)}\n"
        f"## Algorithm Design\n{design(moves, program, lines)}\n"
        f"## Code Implementation\n{blocks}```python\n{code}```\n"
    )


def analysis(operators, program):
    count = len(operators)
    if program is None or not program.kernels:
        return f"The reference calls {count} operators of ATen; its time goes to those."
    calls = sorted({c.operator for c in program.made_calls.values()})
    text = f"The reference calls {count} operators of ATen, each of which reads and writes tensors."
    if calls:
        text += f" {', '.join(calls)} stay; what lies between them only moves memory."
    return text


def design(moves, program, lines):
    parts = []
    if program is not None:
        for (name, _), (kind, sinks) in zip(program.kernels, program.notes):
            parts.append(f"{name}: {KINDS[kind]}, {operators_in(sinks[0])} fused.")
        if any(has_channels_last(c.operands[0]) for c in program.made_calls.values()
               if c.operator in CONVOLUTIONS or c.operator in TRANSPOSED):  # fmt: skip
            parts.append("Images have their channels last, so that no layout is changed between.")
        if any(program.in_memory(v) for v in program.lowered.prepared.values()):
            parts.append("prepare computes once what depends on parameters alone.")
    if not parts:
        parts.append("The operators stay as they are.")
    if lines:
        parts.append("Settings: " + ", ".join(line.split(" ")[0] for line in lines) + ".")
    return " ".join(parts)


def operators_in(sink):
    """How many operations a kernel does for an element, in words."""
    seen = set()

    def visit(v):
        if id(v) in seen or v.kind == "buffer":
            return 0
        seen.add(id(v))
        own = v.kind in ("pointwise", "reduce", "window", "scan")
        return own + sum(visit(o) for o in v.operands)

    count = visit(sink)
    return f"{count} operation" + ("" if count == 1 else "s")
