"""Writes names, numbers and arguments as TorchScript, and compiles TorchScript."""

import keyword
import math
import re

import torch

# Names that the reference's own values cannot have.
RESERVED = (
    set(keyword.kwlist)
    | set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)
    | {"torch", "F", "math", "forward", "prepare", "launch", "Tensor", "Tuple", "List", "Optional"}
)


USES_AUTOCAST = (
    "it uses autocast, whose casts a task does not have: cast tensors explicitly, or import the "
    "module with --dtype"
)


class Unprintable(Exception):
    """A graph has a part that TorchScript or a task cannot express; the message is for users."""


def identifier(text, taken):
    """Returns a valid TorchScript name that resembles `text` and adds it to `taken`.

    The name was not in `taken` before.
    """
    name = re.sub(r"[^0-9A-Za-z_]+", "_", text).strip("_") or "value"
    if name[0].isdigit():
        name = "x" + name
    base = name + "_" if name in RESERVED else name
    name, count = base, 1
    while name in taken:
        name, count = f"{base}_{count}", count + 1
    taken.add(name)
    return name


def number(value):
    """Returns a number as TorchScript. Raises Unprintable if it is complex."""
    if isinstance(value, float) and not math.isfinite(value):
        return 'float("nan")' if math.isnan(value) else f'float("{"-" if value < 0 else ""}inf")'
    if value == -(2**63) and not isinstance(value, float):
        return "(-9223372036854775807 - 1)"  # TorchScript has no literal for it
    if isinstance(value, complex):
        raise Unprintable("it computes with complex constants")
    return repr(value)


class Printed(str):
    """An argument that is TorchScript already."""


def literal(value, show, schema_type=""):
    """Returns an argument of a call as TorchScript.

    show: a function that prints values that stand for a tensor or a size, and returns None for any
    other value. schema_type: the argument's type in the operator's schema. Raises Unprintable if
    TorchScript has no literal for the value.
    """
    if isinstance(value, Printed):
        return str(value)
    shown = show(value)
    if shown is not None:
        return shown
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item, show, schema_type) for item in value) + "]"
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, (int, float, complex)):
        return number(float(value)) if "float" in schema_type else number(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, torch.memory_format):
        return str(value)
    raise Unprintable(f"it passes a {type(value).__name__} to an operator")


def grouped(text):
    """Returns an operand of an infix operator.

    The text is put in parentheses unless it is a name, a number, a call or an indexed value.
    """
    return (
        text
        if re.fullmatch(r"[\w.]+(\([^()]*\)|\[[^\[\]]*\])*", text) and not text[0] == "-"
        else f"({text})"
    )


def runnable(text):
    """Returns a program for PyTorch's own front end, with torch.ops.aten.NAME for torch.NAME.

    Hone's front end resolves torch.NAME as the operator aten::NAME, PyTorch's own the longer name.
    """
    kept = "|".join(
        [
            "float32",
            "float64",
            "float16",
            "bfloat16",
            "int8",
            "uint8",
            "int16",
            "int32",
            "int64",
            "bool",
            "complex64",
            "complex128",
            "contiguous_format",
            "preserve_format",
            "channels_last",
            "channels_last_3d",
            "ops",
            "strided",
            "tensor",
        ]
    )
    return re.sub(rf"\btorch\.(?!(?:{kept})\b)", "torch.ops.aten.", text)


def result_type(results):
    """Returns the type of a function that returns these tensors."""
    return "Tensor" if len(results) == 1 else f"Tuple[{', '.join(['Tensor'] * len(results))}]"


def compile_source(text):
    """Compiles a reference. Returns the compilation unit and the sorted kinds of its operators."""
    unit = torch.jit.CompilationUnit(runnable(text))
    kinds = set()

    def visit(block):
        for node in block.nodes():
            kinds.add(node.kind())
            for inner in node.blocks():
                visit(inner)

    visit(unit.forward.graph)
    return unit, sorted(kinds)
