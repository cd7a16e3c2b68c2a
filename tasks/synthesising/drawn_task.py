"""A drawn program as a task: its name, its sizes, the text of its file, and what the teacher reads.

A task depends on its seed and number only.
"""

import random

import torch
from program import Unfit
from task_dtypes import DTYPES as NAMES
from task_initializer import Init
from task_text import task_text

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
MOST_BYTES = 1 << 30  # of inputs and parameters
# By kind of device: the range of the bytes of all tensors of a task, where sizes are drawn rather
# than fitted to a time.
DRAWN_BYTES = {"cuda": (8 << 20, 512 << 20), "cpu": (256 << 10, 4 << 20)}


def name_of(seed, number):
    return f"s{seed}_{number:06d}"


def random_of(seed, number):
    """Returns the random stream that a program is drawn from."""
    return random.Random(f"{seed} {number}")


def rounded(size):
    """Returns a near size, a multiple of eight if it is large."""
    return max(1, round(size)) if size < 64 else 8 * round(size / 8)


class DrawnTask:
    """A program with the type of its floating-point tensors."""

    def __init__(self, name, program, dtype, is_relaxed=False):
        self.name, self.program, self.dtype, self.is_relaxed = name, program, dtype, is_relaxed

    def dtype_of(self, kind):
        return torch.int64 if kind == "index" else self.dtype

    def shapes(self, case):
        """Yields each argument with its shape in numbers and its type. case: sizes by name."""
        p = self.program
        for tensor in p.inputs + p.parameters:
            yield tensor, p.in_case(case, tensor["shape"]), self.dtype_of(tensor["kind"])

    def argument_bytes(self):
        """Returns the bytes of the timed case's inputs and parameters."""
        return sum(
            torch.Size(shape).numel() * dtype.itemsize
            for _, shape, dtype in self.shapes(self.program.timed)
        )

    def draw_sizes(self, device):
        """Changes the first size so that all tensors together have a random number of bytes, as
        suits a kind of device.

        Raises Unfit if even the smallest size needs too much memory.
        """
        p = self.program
        first = next(iter(p.timed))
        least, most = DRAWN_BYTES[device]
        wanted = least * (most / least) ** p.random.random()
        p.timed[first] = rounded(p.timed[first] * wanted / self._all_bytes())
        if self.argument_bytes() > MOST_BYTES or self._all_bytes() > 2 * most:
            raise Unfit("it needs too much memory")

    def _all_bytes(self):
        """Returns the bytes of the timed case's arguments and of what its statements make."""
        p = self.program
        made = [v for v in p.values if v.is_made]
        return self.argument_bytes() + sum(
            torch.Size(p.in_case(p.timed, v.shape)).numel() * self.dtype.itemsize for v in made
        )

    def cases(self):
        p = self.program
        small = ({"sizes": p.given(case), "timed": False} for case in p.small)
        return [{"sizes": p.given(p.timed), "timed": True}, *small]

    def _tensors(self, tensors):
        return [
            {
                "name": t["name"],
                "shape": t["shape"],
                "dtype": self.dtype_of(t["kind"]),
                "init": Init(*t["init"]),
            }
            for t in tensors
        ]

    def text(self):
        """Returns the text of the task file."""
        p = self.program
        return task_text(
            self.name,
            p.summary(),
            p.reference(),
            self._tensors(p.inputs),
            self._tensors(p.parameters),
            self.cases(),
            True,
            None,
            self.is_relaxed,
            p.tier,
        )

    def description(self):
        """Returns the task as the teacher takes it (tasks/teaching/teach.py)."""
        p = self.program
        tensors = [
            {
                "name": t["name"],
                "shape": t["shape"],
                "dtype": NAMES[self.dtype_of(t["kind"])],
                "is_parameter": of is p.parameters,
            }
            for of in (p.inputs, p.parameters)
            for t in of
        ]
        return {
            "name": self.name,
            "reference": p.reference(),
            "relaxed": self.is_relaxed,
            "tensors": tensors,
            "cases": self.cases(),
        }
