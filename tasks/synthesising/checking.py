"""Checks of drawn programs: they run, give the same twice, and mean something."""

import random

import torch
from cost_estimate import estimate
from torchscript_text import runnable

# Tolerances of the judge (doc/evaluation.md section 2, point 5) by type.
TOLERANCE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 2e-2}
# Share of the tolerance that the reference's own errors may take: a program that is right may sum
# in another order, and at its timed sizes a task has many more elements than here.
MOST_OWN_ERROR = 0.25
DISTRIBUTIONS = ("declared", "shifted", "small", "outliers")
MOST_BYTES = 1 << 30  # of inputs and parameters
MOST_MOVED_BYTES = 2 << 30  # that one operator reads and writes
# Share of an output's size by which it must vary to say anything.
LEAST_VARIATION = 1e-3


class Unfit(Exception):
    """A program that is no task. The text says why, in words that many programs share."""


def forward_of(reference):
    """Returns a reference as a Python function."""
    names = {"torch": torch, "Tensor": torch.Tensor, "Tuple": tuple}
    exec(compile(runnable(reference), "reference", "exec"), names)
    return names["forward"]


def tuple_of(result):
    return result if isinstance(result, tuple) else (result,)


class Checker:
    """Checks one program, in the given type of its floating-point tensors.

    The methods raise Unfit.
    """

    def __init__(self, program, dtype):
        self.program, self.dtype = program, dtype
        self.reference = program.reference()
        self.forward = forward_of(self.reference)

    def _shapes(self, case):
        for tensor in self.program.inputs + self.program.parameters:
            dtype = torch.int64 if tensor["kind"] == "index" else self.dtype
            yield tensor, self.program.in_case(case, tensor["shape"]), dtype

    def fit_sizes(self, least_s, most_s):
        """Changes the first size until a call is estimated to take a random time in the range.

        Returns the estimated seconds.
        """
        p = self.program
        first = next(iter(p.timed))
        chooser = random.Random(f"{self.reference}")
        wanted = least_s * (most_s / least_s) ** chooser.random()
        for _ in range(8):
            seconds, largest = self.estimate()
            if seconds == 0:
                raise Unfit("it computes nothing")
            if wanted / 1.5 <= seconds <= wanted * 1.5:
                break
            factor = min(max(wanted / seconds, 1 / 64), 64.0)
            p.timed[first] = self.rounded(p.timed[first] * factor)
        else:
            seconds, largest = self.estimate()
        if not least_s <= seconds <= most_s:
            raise Unfit("no size makes it take a time in the range")
        held = sum(
            torch.Size(shape).numel() * dtype.itemsize for _, shape, dtype in self._shapes(p.timed)
        )
        if held > MOST_BYTES or largest > MOST_MOVED_BYTES:
            raise Unfit("it needs too much memory")
        return seconds

    @staticmethod
    def rounded(size):
        """Returns a near size, a multiple of eight if it is large."""
        return max(1, round(size)) if size < 64 else 8 * round(size / 8)

    def estimate(self):
        """Returns the estimated seconds of a timed call, and the bytes of its largest operator."""
        arguments = [(shape, dtype) for _, shape, dtype in self._shapes(self.program.timed)]
        try:
            return estimate(self.forward, arguments)
        except (RuntimeError, IndexError, TypeError) as e:
            raise Unfit("it does not run at its timed sizes") from e

    def draw(self, case, generator, distribution="declared", device="cpu", dtype=None):
        """Returns arguments for a case."""
        drawn = []
        for tensor, shape, declared in self._shapes(case):
            of, a, b = tensor["init"]
            if of == "integers":
                high = case[b] if isinstance(b, str) else b
                drawn.append(torch.randint(a, high, shape, generator=generator).to(device))
                continue
            x = torch.randn(shape, generator=generator)
            x = x * b + a
            if tensor in self.program.inputs:
                x = self._from(x, distribution, generator)
            drawn.append(x.to(declared).to(dtype or declared).to(device))
        return drawn

    @staticmethod
    def _from(x, distribution, generator):
        if distribution == "shifted":
            return 10 * x + 25
        if distribution == "small":
            return x / 1000
        if distribution == "outliers":
            x = x.clone()
            count = max(1, x.numel() // 5000)
            places = torch.randint(0, x.numel(), (count,), generator=generator)
            x.view(-1)[places] += 500
        return x

    def check_small_cases(self):
        """Runs the small cases. Returns the distributions on which results are exact and vary."""
        exact = list(DISTRIBUTIONS)
        for case in self.program.small:
            for distribution in DISTRIBUTIONS:
                if distribution in exact and not self._is_exact(case, distribution):
                    if distribution == "declared":
                        raise Unfit("its results are not finite, not exact or say nothing")
                    exact.remove(distribution)
        self._require_an_effect()
        return exact

    def _is_exact(self, case, distribution):
        generator = torch.Generator().manual_seed(1)
        own = self.draw(case, generator, distribution)
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
            limit = TOLERANCE[self.dtype] * (size + e.abs())
            if not ((a.double() - e).abs() <= MOST_OWN_ERROR * limit).all():
                return False
            least = LEAST_VARIATION if distribution == "declared" else TOLERANCE[self.dtype]
            if e.numel() > 1 and e.std() <= least * size:
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
