"""Expressions of C as text."""

import math

import torch

# C type in memory, reading, and writing.
STORED = {
    torch.float32: ("float", "{0}", "{0}"),
    torch.float16: ("__half", "__half2float({0})", "__float2half({0})"),
    torch.bfloat16: ("__nv_bfloat16", "__bfloat162float({0})", "__float2bfloat16({0})"),
    torch.int64: ("long long", "{0}", "{0}"),
    torch.int32: ("int", "{0}", "{0}"),
    torch.bool: ("unsigned char", "({0} != 0)", "({0} ? 1 : 0)"),
}


def register_type(dtype):
    if dtype == torch.bool:
        return "bool"
    return "float" if dtype.is_floating_point else "long long"


def literal(number, dtype):
    if isinstance(number, bool) or dtype == torch.bool:
        return "true" if number else "false"
    if not dtype.is_floating_point:
        return str(int(number))
    number = float(number)
    if math.isnan(number):
        return "NAN"
    if math.isinf(number):
        return "INFINITY" if number > 0 else "-INFINITY"
    text = repr(number)
    return (text if "." in text or "e" in text else text + ".0") + "f"


def scaled(text, factor):
    """Returns a product in C. text: a factor that needs no parentheses."""
    if text == "0" or factor == "1":
        return text
    return f"{text} * {factor}"


def summed(left, right):
    if left == "0" or right == "0":
        return left if right == "0" else right
    return f"{left} + {right}"


def grouped(text):
    return f"({text})" if " " in text else text


def bare(text):
    """Returns an expression without parentheses around the whole of it."""
    if not (text.startswith("(") and text.endswith(")")):
        return text
    depth = 0
    for k, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1] if k == len(text) - 1 else text
