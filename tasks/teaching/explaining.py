"""Prints a variant as a document, and says what it does and why."""

from calls import CONVOLUTIONS, TRANSPOSED, has_channels_last
from moves import settings, settings_of


def setting_lines(task, device, reference, moves, program):
    """Returns the lines of a variant's toml block."""
    operators = [s.operator for s in getattr(reference, "statements", [])]
    heavy = [o for o in operators if o in CONVOLUTIONS or o in TRANSPOSED]
    calls = len(operators)
    if program is not None:
        calls = sum("launch(" in line or "torch." in line for line in program.lines)
    return settings(moves, task, device, calls, bool(heavy))


def document(task, moves, program, lines, analyzed=None):
    """lines: of the toml block. analyzed: the text of the analysis, without it that of analysis().

    program: a HostProgram; without it, the reference as it is.
    """
    code = task["reference"].strip() + "\n" if program is None else program.python_block()
    cuda = "" if program is None else program.cuda_block()
    blocks = ""
    if lines:
        blocks += "```toml\n" + "\n".join(lines) + "\n```\n"
    if cuda:
        blocks += f"```cuda\n{cuda}```\n"
    return (
        f"## Performance Analysis\n{analyzed or analysis(program)}\n"
        f"## Algorithm Design\n{design(moves, program, lines)}\n"
        f"## Code Implementation\n{blocks}```python\n{code}```\n"
    )


def analysis(program):
    if program is None or not program.kernels:
        return "The time goes to the operators of the reference, which stay as they are."
    text = "Each operator of the reference reads and writes its tensors in memory."
    calls = sorted({c.operator for c in program.made_calls.values()})
    if calls:
        text += f" ATen computes {', '.join(calls)}; kernels compute the rest."
    return text


def design(moves, program, lines):
    parts = []
    if program is not None:
        parts += [f"Sizes of {name}: {', '.join(derived)}."
                  for name, derived in program.lowered.derivations.items() if derived]  # fmt: skip
        parts += program.steps
        if any(has_channels_last(c.operands[0]) for c in program.made_calls.values()
               if c.operator in CONVOLUTIONS or c.operator in TRANSPOSED):  # fmt: skip
            parts.append("Images have their channels last, so that no layout is changed between.")
        if any(program.in_memory(v) for v in program.lowered.prepared.values()):
            parts.append("prepare computes once what depends on parameters alone.")
    if not parts:
        parts.append("The operators stay as they are.")
    if lines:
        parts.append(f"Settings: {', '.join(settings_of(lines))}.")
    return " ".join(parts)
