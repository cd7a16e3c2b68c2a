"""Compares variants of a task in words, as the analysis of a document that improves on others."""

from typing import NamedTuple

import torch
from cost_estimate import OperatorCosts
from costs import drawn_factors, program_us
from reading import call

MIN_GAIN = 1.05  # by which the document is to be faster than what its prompt shows
MAX_DIFFERENCES = 4


def statement_us(reference, timed):
    """Returns the estimated microseconds of each statement of a reference, run as it is."""
    known, case = {}, reference.cases[timed]
    for name, t in reference.tensors.items():
        shape = [case[s] if isinstance(s, str) else s for s in t["shape"]]
        known[name] = torch.empty(shape, dtype=getattr(torch, t["dtype"]), device="meta")
    found = {}
    for statement in reference.statements:
        with OperatorCosts() as costs:
            known[statement.name] = call(statement, known)
        found[statement.name] = 1e6 * costs.seconds
    return found


def differences(new, old):
    """Returns what one variant does otherwise than another, in words."""
    parts = []
    if len(new.program.launches) != len(old.program.launches):
        parts.append(f"{_kernels(new)} instead of {_kernels(old)}")
    before = {launch.computes: launch for launch in old.program.launches}
    for launch in new.program.launches:
        other = before.get(launch.computes)
        if other is None:
            continue
        if launch.division != other.division:
            parts.append(f"{launch.name} has {launch.division} instead of {other.division}")
        elif launch.block != other.block:
            parts.append(f"{launch.name} has blocks of {launch.block} instead of {other.block}")
    for name in sorted({*new.settings} ^ {*old.settings}):
        parts.append(f"{'with' if name in new.settings else 'without'} {name}")
    return parts[:MAX_DIFFERENCES]


def _kernels(variant):
    count = len(variant.program.launches)
    return f"{count} kernel{'' if count == 1 else 's'}"


class Contrast(NamedTuple):
    """Two variants with their estimated speed-ups, and the document of a faster one.

    shown: pairs of an estimate and a text, the slower one first.
    """

    shown: list
    document: str


def contrast(lesson, variants, random):
    """Returns a Contrast of three of the variants, or None if no three differ enough."""
    fitting = [v for v in variants if v.program is not None and v.program.launches]
    if len(fitting) < 3:
        return None
    calls_us = statement_us(lesson.reference, lesson.timed)
    eager_us = sum(calls_us.values())
    factors, scores = drawn_factors(random), {}
    for v in fitting:
        scores[v.text] = eager_us / program_us(v.program, calls_us, v.settings, factors)
    fitting.sort(key=lambda v: scores[v.text])
    best = fitting[-1]
    slower = [v for v in fitting if scores[v.text] * MIN_GAIN < scores[best.text]]
    if len(slower) < 2:
        return None
    second = random.choice(slower[1:])
    slowest = [v for v in slower if scores[v.text] * MIN_GAIN < scores[second.text]]
    if not slowest:
        return None
    first = random.choice(slowest)
    told, gained = differences(second, first), differences(best, second)
    if not told or not gained:
        return None
    analysis = (
        f"2 is faster than 1 ({scores[second.text]:.2f}x, {scores[first.text]:.2f}x): "
        f"{', '.join(told)}. Better than 2: {', '.join(gained)}."
    )
    shown = [(scores[v.text], v.text) for v in (first, second)]
    return Contrast(shown, lesson.document_of(best, analysis))
