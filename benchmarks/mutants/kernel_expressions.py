"""Mutations of expressions in a cuda block: indices, strides, functions, signs and numbers.

Each function yields (kind, operator, position, description, text of the block).
"""

import re

CALLS = {
    "expf": "(1.0f + ({}))", "__expf": "(1.0f + ({}))", "exp2f": "(1.0f + ({}))",
    "logf": "(({}) - 1.0f)", "__logf": "(({}) - 1.0f)", "sqrtf": "({})", "tanhf": "({})",
    "rsqrtf": "(1.0f / ({}))", "fabsf": "({})", "erff": "tanhf({})", "floorf": "rintf({})",
    "rintf": "floorf({})", "log1pf": "({})", "expm1f": "({})", "fmaxf": "fminf({})",
    "fminf": "fmaxf({})", "max": "min({})", "min": "max({})",
}  # fmt: skip  # fmt: skip
EXTREMES = {"fmaxf", "fminf", "max", "min"}
UPDATES = {"+=", "-=", "*=", "/="}
# Digits of a float's significand that are cut off, by the precision that remains.
REDUCED = {"TF32": 13, "bfloat16": 16, "19 bits": 5}


def indices(source):
    integers = source.integers()
    used = {source[i + 1] for i in source.subscripts() if source.partner[i] == i + 2} & integers
    for i in source.subscripts():
        closing = source.partner[i]
        index, whole = source.span(i + 1, closing), source.span(i - 1, closing + 1)
        for by in ("+ 1", "- 1"):
            yield (
                "index_offset",
                by,
                i,
                f"`{whole}` has the index ({index}) {by}",
                source.replaced(i + 1, closing, f"({index}) {by}"),
            )
        if source[closing + 1] == "=":
            continue
        if closing == i + 2 and index in integers:
            for other in sorted((used & source.integers(i)) - {index} | {"0"}):
                yield (
                    "broadcast_changed",
                    "name" if other != "0" else "0",
                    i,
                    f"`{whole}` has the index {other}",
                    source.replaced(i + 1, closing, other),
                )


def strides(source):
    integers = source.integers()
    for i in source.find("*"):
        if source[i - 1] in integers and source[i + 1] in integers:
            for by in ("- 1", "+ 1"):
                yield (
                    "stride_changed",
                    by,
                    i,
                    f"`{source.span(i - 1, i + 2)}` has {source[i + 1]} {by}",
                    source.replaced(i + 1, i + 2, f"({source[i + 1]} {by})"),
                )


def accumulators(source):
    updated = {source[i - 1] for i in range(len(source)) if source[i] in UPDATES}
    for i in source.find("="):
        name, value = source[i - 1], source[i + 1]
        if source[i + 2] not in {";", ","} or source[i - 2] not in {"float", ","}:
            continue
        if name in updated and re.fullmatch(r"[\d.]+f?", value):
            other = "1.0f" if float(value.rstrip("f")) == 0 else "0.0f"
            yield (
                "accumulator_start",
                value,
                i,
                f"{name} begins with {other}",
                source.replaced(i + 1, i + 2, other),
            )
    for i in source.find("INFINITY") + source.find("FLT_MAX"):
        first = i - 1 if source[i - 1] == "-" else i
        yield (
            "accumulator_start",
            "infinity",
            i,
            f"`{source.span(first, i + 1)}` is 0",
            source.replaced(first, i + 1, "0.0f"),
        )


def reduced_loads(source):
    floats = source.floats()
    for i in source.subscripts():
        closing = source.partner[i]
        after = source[closing + 1]
        if source[i - 1] not in floats or after in UPDATES | {"=", "[", "++", "."}:
            continue
        if source[i - 2] in {"&", "]", "."}:
            continue
        whole = source.span(i - 1, closing + 1)
        for what, bits in REDUCED.items():
            helper = (
                "static __device__ float reduced(float x) {\n"
                f"  return __int_as_float((__float_as_int(x) + {1 << (bits - 1)}) & ~"
                f"{(1 << bits) - 1});\n}}\n"
            )
            yield (
                "load_rounded",
                what,
                i,
                f"`{whole}` is rounded to {what}",
                helper + source.replaced(i - 1, closing + 1, f"reduced({whole})"),
            )


def biases(source):
    for i in source.find("+"):
        if source.kind(i + 1) != "name" or source[i + 2] != "[" or i + 2 not in source.partner:
            continue
        end = source.partner[i + 2] + 1
        if source[end] in {";", ")", ","}:
            yield (
                "bias_dropped",
                "kernel",
                i,
                f"`{source.span(i, end)}` is left out",
                source.replaced(i, end, ""),
            )


def calls(source):
    for i in range(len(source)):
        if source[i] not in CALLS or source[i + 1] != "(" or i + 1 not in source.partner:
            continue
        closing = source.partner[i + 1]
        whole = source.span(i, closing + 1)
        value = CALLS[source[i]].format(source.span(i + 2, closing))
        kind = "extreme_swapped" if source[i] in EXTREMES else "function_replaced"
        yield (
            kind,
            source[i],
            i,
            f"`{whole}` is `{value}`",
            source.replaced(i, closing + 1, value),
        )


def signs(source):
    others = {"+": "-", "-": "+", "*": "+", "/": "*"}
    heads = [(a, d) for a, _, _, d in source.loops()]
    types = {"float", "const", "void"}
    for i in range(1, len(source) - 1):
        is_binary = source.kind(i - 1) in {"name", "number"} or source[i - 1] in {")", "]"}
        is_operand = source.kind(i + 1) in {"name", "number"} or source[i + 1] == "("
        if source[i] not in others or not is_binary or not is_operand:
            continue
        is_pointer = source[i - 1] in types or source[i + 1] in {"__restrict__", "const"}
        if source[i] == "*" and is_pointer:
            continue
        if any(a < i < d for a, d in heads):
            continue
        text = source.span(source.statement_begin(i), source.statement_end(i))
        yield (
            "sign_changed",
            source[i],
            i,
            f"`{text}` has {others[source[i]]} for {source[i]}",
            source.replaced(i, i + 1, others[source[i]]),
        )


def numbers(source):
    for i in range(len(source)):
        text = source[i]
        if source.kind(i) != "number" or not re.fullmatch(r"[\d.]*\.[\d.]*(e[+-]?\d+)?f?", text):
            if not re.fullmatch(r"\d+(\.\d*)?e-?\d+f?", text):
                continue
        value = float(text.rstrip("f"))
        if value == 0:
            continue
        changes = [("eps_dropped", 0.0)] if value <= 1e-2 else [("constant_nudged", 1.001 * value)]
        changes.append(("constant_changed", 2 * value))
        for kind, other in changes:
            yield (
                kind,
                "kernel",
                i,
                f"{text} is {other!r}",
                source.replaced(i, i + 1, f"{other!r}f"),
            )


FAMILIES = (
    indices, strides, accumulators, reduced_loads, biases, calls, signs, numbers,
)  # fmt: skip
