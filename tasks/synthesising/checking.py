"""Checks of drawn programs: they run, give the same twice, and mean something."""

import random

import torch
from cost_estimate import estimate
from drawn_task import MOST_BYTES, rounded
from program import Unfit
from torchscript_text import runnable

# Largest error of a reference's results, by type, relative to an output's size plus the element's.
# Results with larger errors say little.
MAX_OWN_ERROR = {torch.float32: 2.5e-5, torch.float16: 2.5e-3, torch.bfloat16: 5e-3}
MAX_MOVED_BYTES = 2 << 30  # that one operator reads and writes
# Share of an output's size by which it must vary to say anything.
MIN_VARIATION = 1e-3


def forward_of(reference):
    """Returns a reference as a Python function."""
    names = {"torch": torch, "Tensor": torch.Tensor, "Tuple": tuple}
    exec(compile(runnable(reference), "reference", "exec"), names)
    return names["forward"]


def tuple_of(result):
    return result if isinstance(result, tuple) else (result,)


class Checker:
    """Checks the program of a DrawnTask. The methods raise Unfit."""

    def __init__(self, task):
        self.task, self.program, self.dtype = task, task.program, task.dtype
        self.reference = task.program.reference()
        self.forward = forward_of(self.reference)

    def fit_sizes(self, min_s, max_s):
        """Changes the first size until a call is estimated to take a random time in the range.

        Returns the estimated seconds.
        """
        p = self.program
        first = next(iter(p.timed))
        chooser = random.Random(f"{self.reference}")
        wanted = min_s * (max_s / min_s) ** chooser.random()
        for _ in range(8):
            seconds, largest = self.estimate()
            if seconds == 0:
                raise Unfit("it computes nothing")
            if wanted / 1.5 <= seconds <= wanted * 1.5:
                break
            factor = min(max(wanted / seconds, 1 / 64), 64.0)
            p.timed[first] = rounded(p.timed[first] * factor)
        else:
            seconds, largest = self.estimate()
        if not min_s <= seconds <= max_s:
            raise Unfit("no size makes it take a time in the range")
        if self.task.argument_bytes() > MOST_BYTES or largest > MAX_MOVED_BYTES:
            raise Unfit("it needs too much memory")
        return seconds

    def estimate(self):
        """Returns the estimated seconds of a timed call, and the bytes of its largest operator."""
        arguments = [(shape, dtype) for _, shape, dtype in self.task.shapes(self.program.timed)]
        try:
            return estimate(self.forward, arguments)
        except (RuntimeError, IndexError, TypeError) as e:
            raise Unfit("it does not run at its timed sizes") from e

    def draw(self, case, generator, device="cpu", dtype=None):
        """Returns arguments for a case."""
        drawn = []
        for tensor, shape, declared in self.task.shapes(case):
            of, a, b = tensor["init"]
            if of == "integers":
                high = case[b] if isinstance(b, str) else b
                drawn.append(torch.randint(a, high, shape, generator=generator).to(device))
                continue
            if of == "uniform":
                x = torch.rand(shape, generator=generator) * (b - a) + a
            else:
                x = torch.randn(shape, generator=generator) * b + a
            drawn.append(x.to(declared).to(dtype or declared).to(device))
        return drawn

    def check_small_cases(self):
        """Runs the small cases, whose results must be exact and vary."""
        for case in self.program.small:
            if not self._is_exact(case):
                raise Unfit("its results are not finite, not exact or say nothing")
        self._require_an_effect()

    def _is_exact(self, case):
        generator = torch.Generator().manual_seed(1)
        own = self.draw(case, generator)
        wide = [x.double() if x.is_floating_point() else x for x in own]
        try:
            first, second = tuple_of(self.forward(*own)), tuple_of(self.forward(*own))
            expected = tuple_of(self.forward(*wide))
        except (RuntimeError, IndexError, TypeError) as e:
            raise Unfit("it does not run at small sizes") from e
        for a, b, e in zip(first, second, expected):
            if not torch.equal(a, b) or not torch.isfinite(e).all() or not torch.isfinite(a).all():
                return False
            size = e.square().mean().sqrt()
            limit = MAX_OWN_ERROR[self.dtype] * (size + e.abs())
            if not ((a.double() - e).abs() <= limit).all():
                return False
            if e.numel() > 1 and e.std() <= MIN_VARIATION * size:
                return False
        return True

    def _require_an_effect(self):
        """Requires that the first input changes every output."""
        case = self.program.small[0]
        generator = torch.Generator().manual_seed(2)
        arguments = self.draw(case, generator)
        before = tuple_of(self.forward(*arguments))
        first = arguments[0]
        arguments[0] = first + torch.randn(first.shape, generator=generator).to(first.dtype)
        for a, b in zip(before, tuple_of(self.forward(*arguments))):
            if torch.equal(a, b):
                raise Unfit("its first input has no effect")
