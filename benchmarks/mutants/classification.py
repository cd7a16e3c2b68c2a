"""Decides whether a mutant that was accepted is wrong."""

import dataclasses
import fnmatch
import math
import pathlib
import re
import time
import tomllib

import distributions
import torch
from documents import blocks_of
from errors import INFINITE, Reference, copied, widened
from operators import PROGRAM_ERRORS, forward_of, outputs_of
from program import normalized
from simplification import are_equal

KNOWN = pathlib.Path(__file__).resolve().parent / "known_equivalent.toml"
# Errors that honest programs make as well. 215 of the 227 documents of configs/corpus are within
# 100 units for all inputs; the largest errors come from other forms that cancel (a distance as a
# difference of products).
ACCURATE_UNITS = 100.0
# Errors up to here are admitted: after each of about twenty operators, the judge allows sixteen
# times an error of two roundings. They leave 15 of 24 bits, and so do honest programs: with rows of
# mixed magnitude, 12 documents of configs/corpus are off by 1,800 to 36,000 units (gru_step).
ADMITTED_UNITS = 640.0
# Errors up to here may come from a less stable form of the same function; beyond, it overflows.
INEXACT_UNITS = 2.0**16
# An error is blamed on inputs that the judge does not draw if it is so many times larger there.
TELLING_FACTOR = 100.0
# Such mutants may be right on a CPU, whose threads take turns, and wrong on a GPU.
RACES = {"barrier_removed", "guard_removed"}
SHAPES = {"right_for_timed_shape", "right_for_odd_shape"}
MAX_ELEMENTS = 4_000_000  # of the arguments of a call that is run here
MAX_SECONDS = 0.3  # of such a call of the reference, apart from the smallest case
# Seconds that a call of the reference takes, the number of distributions that are drawn, and the
# number of calls that the units are taken from.
EFFORTS = ((0.01, 99, 8), (0.1, 12, 6), (1.0, 8, 4), (float("inf"), 4, 3))
CLEAR_UNITS = 1e4  # an error after which no larger one is looked for


@dataclasses.dataclass
class Verdict:
    """verdict: one of survivors.VERDICTS. units: the largest error. inputs: where it shows.

    cause: of a hole. reason: of any other verdict.
    """

    verdict: str
    units: float = 0.0
    inputs: str = ""
    cause: str = ""
    reason: str = ""

    def text(self):
        if self.verdict != "hole":
            return self.reason
        size = "infinitely" if math.isinf(self.units) else f"{self.units:.3g} units"
        return f"Off by {size} ({self.inputs}); cause: {self.cause}"

    def facts(self):
        facts = dataclasses.asdict(self)
        facts["units"] = None if math.isinf(self.units) else self.units
        return facts


class Worst:
    """The largest error of a mutant, in units. inputs: where it shows."""

    def __init__(self):
        self.units, self.inputs = 0.0, ""
        self._by_label = {}

    def include(self, units, sizes, label):
        self._by_label[label] = max(units, self._by_label.get(label, 0.0))
        if units > self.units:
            text = " ".join(f"{name}={size}" for name, size in sizes.items())
            self.units, self.inputs = units, f"{label}, {text}" if text else label

    def cause(self, task):
        """Returns why the judge misses the error."""
        drawn = [u for label, u in self._by_label.items() if distributions.is_judges(task, label)]
        return "tolerance" if self.units <= TELLING_FACTOR * max(drawn) else "inputs"


def known_reasons():
    return tomllib.loads(KNOWN.read_text()).get("equivalent", []) if KNOWN.exists() else []


def matches(entry, mutant):
    """Returns whether an entry of a list of known mutants names a mutant."""
    return (
        fnmatch.fnmatch(mutant["kind"], entry.get("kind", "*"))
        and fnmatch.fnmatch(mutant["task"], entry.get("task", "*"))
        and fnmatch.fnmatch(mutant["source"], entry.get("source", "*"))
        and re.search(entry.get("pattern", ""), mutant["description"]) is not None
    )


class Classifier:
    """mutants: the folder of their documents. runner: a KernelRunner, or None."""

    def __init__(self, mutants, tasks, runner):
        self._mutants, self._tasks, self._runner = mutants, tasks, runner
        self._known = known_reasons()
        self._references = {}  # of the last task, by sizes and distribution
        self._of_task = None

    def classify(self, mutant):
        task = self._tasks[mutant["task"]]
        if task is not self._of_task:
            self._of_task, self._references = task, {}
            self._cases, self._is_complete = quick_cases(task)
            seconds = seconds_of(task, self._cases[0])
            self._effort = next(e for e in EFFORTS if seconds <= e[0])
        for entry in self._known:
            if matches(entry, mutant):
                return Verdict("equivalent", reason=entry["reason"])
        path = self._mutants / mutant["task"] / f"{mutant['document']}.md"
        text = path.read_text()
        try:
            if mutant["source"] != "reference":
                return self._kernel(task, mutant, text)
            return self._graph(task, mutant, blocks_of(text)["python"])
        except PROGRAM_ERRORS as e:
            return Verdict("unknown", reason=f"{type(e).__name__}: {e}"[:200])

    def _calls(self, task):
        """Yields (sizes, distribution, Reference) of the calls that mutants are tried on."""
        _, max_labels, calls = self._effort
        for number, sizes in enumerate(self._cases):
            labels = distributions.labels_of(task, max_labels if number == 0 else 3)
            for label in labels:
                key = number, label
                if key not in self._references:
                    arguments = distributions.draw(task, sizes, label)
                    self._references[key] = Reference(task.reference, arguments, calls)
                yield sizes, label, self._references[key]

    def _graph(self, task, mutant, program):
        if are_equal(task.reference, normalized(program)):
            return Verdict("equivalent", reason="its graph is the same")
        native, float64 = forward_of(program), forward_of(program, is_float64=True)
        worst, is_exact = Worst(), True
        for sizes, label, reference in self._calls(task):
            with torch.inference_mode():
                given = outputs_of(native(*copied(reference.arguments)))
                given_float64 = outputs_of(float64(*widened(reference.arguments)))
            difference = reference.difference(given, given_float64)
            is_exact = is_exact and difference.is_exact
            worst.include(difference.units, sizes, label)
            if worst.units > CLEAR_UNITS and not is_exact:
                break
        return self._concluded(task, mutant, worst, is_exact)

    def _concluded(self, task, mutant, worst, is_exact):
        if worst.units <= ACCURATE_UNITS:
            if mutant["kind"] in SHAPES and not self._is_complete:
                return Verdict("hole", INFINITE, "a case that is too large here", "shape")
            if is_exact:
                return Verdict("equivalent", worst.units, reason="it is equal in float64")
            return Verdict("accurate", worst.units, reason=f"off by {worst.units:.2g} units")
        if worst.units <= ADMITTED_UNITS:
            reason = f"off by {worst.units:.3g} units ({worst.inputs})"
            return Verdict("admitted", worst.units, worst.inputs, reason=reason)
        if is_exact and worst.units <= INEXACT_UNITS:
            reason = f"off by {worst.units:.3g} units ({worst.inputs})"
            return Verdict("inexact", worst.units, worst.inputs, reason=reason)
        return Verdict("hole", worst.units, worst.inputs, worst.cause(task))

    def _kernel(self, task, mutant, text):
        honest = self._runner and self._runner.honest_text(task, mutant["source"])
        if not honest:
            return Verdict("unknown", reason="kernels need --runner and --documents")
        calls = list(self._calls(task))
        arguments = [reference.arguments for _, _, reference in calls]
        expected = self._runner.outputs(task, honest, arguments)
        given = self._runner.outputs(task, text, arguments)
        for outputs in (expected, given):
            if isinstance(outputs, str):
                return Verdict("unknown", reason=outputs[:200])
        worst, is_same = Worst(), True
        for (sizes, label, reference), native, other in zip(calls, given, expected):
            is_same = is_same and all(torch.equal(a, b) for a, b in zip(native, other))
            difference = reference.difference(native, known_errors=reference.errors_of(other))
            worst.include(difference.units, sizes, label)
        if mutant["kind"] in RACES and worst.units <= ACCURATE_UNITS:
            return Verdict("hole", worst.units, "right on a CPU", "race")
        if is_same:
            return Verdict("equivalent", reason="its outputs have the same bits")
        return self._concluded(task, mutant, worst, False)


def quick_cases(task):
    """Returns the sizes that mutants are tried in, and whether they cover all cases.

    The smallest case comes first. The sizes of a case that is too large replace those of the
    smallest case one at a time, since a mutant may ask for one of them.
    """
    ordered = sorted(task.cases, key=task.elements)
    smallest, cases, is_complete = ordered[0], [ordered[0]], True
    for sizes in ordered[1:]:
        tried = [sizes]
        if not is_quick(task, sizes):
            tried = [smallest | {name: size} for name, size in sizes.items()]
        for one in tried:
            if one in cases:
                continue
            if is_quick(task, one):
                cases.append(one)
            else:
                is_complete = False
    return cases, is_complete


def is_quick(task, sizes):
    """Returns whether the reference runs with these sizes, and takes little time."""
    if task.elements(sizes) > MAX_ELEMENTS:
        return False
    try:
        return seconds_of(task, sizes) <= MAX_SECONDS
    except PROGRAM_ERRORS:
        return False


def seconds_of(task, sizes):
    """Returns the time of a call of the reference in float64."""
    forward = forward_of(task.reference, is_float64=True)
    arguments = widened(distributions.draw(task, sizes, "declared"))
    begin = time.perf_counter()
    with torch.inference_mode():
        forward(*arguments)
    return time.perf_counter() - begin
