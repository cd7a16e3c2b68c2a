"""The teacher's moves: what a variant may do differently, and how it is described."""

import random

from kernels import Choices
from pointwise_rules import ROWS, SAME
from reading import VIEWS
from strategies import STRATEGIES

BEST_GUESSES = 3
MAX_STATEMENTS = 64  # whose results a variant may choose to store
# Operators that ATen computes as fast as a kernel that does nothing else; measured on an H100.
AS_FAST_ALONE = {*ROWS, *SAME, "gelu", "clamp", "pow", "softmax", "log_softmax"}
# Operators whose result jumps: a quotient that is rounded otherwise gives another step.
STEPS = frozenset(("floor", "ceil", "round", "trunc", "frac", "fmod", "remainder", "floor_divide"))


class Moves:
    """What one variant does. fuses: it has kernels, rather than the reference as it is."""

    def __init__(self, number, seed, task, device):
        """number: the first variants are best guesses (kernels and settings, the reference with
        settings, kernels without TF32), the others are drawn."""
        draw = random.Random(f"{seed} {number} {task}")
        self.fuses = number != 1
        self.tf32 = number != 2  # where the task admits it: it is fast, and may be too inexact
        self.folds = True
        self.channels_last = False  # around convolutions of images
        self.fast_math = False
        self.graph = None  # where there is more than one launch, and nothing is tuned
        self.tunes = number == 1  # cuDNN times its algorithms
        self.choices = Choices(is_serial=device == "cpu")
        if number < BEST_GUESSES:
            return
        self.fuses = draw.random() < 0.95
        self.folds = draw.random() < 0.8
        self.tf32 = draw.random() < 0.8
        self.fast_math = draw.random() < 0.3
        self.graph = draw.choice([None, None, True, False])
        self.tunes = draw.random() < 0.5
        self.choices.block = draw.choice(
            [64, 128, 256, 512, 1024] if device == "cuda" else [64, 256]
        )
        self.choices.items = draw.choice([1, 2, 4, 4])
        self.choices.row_block = draw.choice([None, 128, 256, 512, 1024])
        self.choices.splits = draw.random() < 0.7
        self.channels_last = draw.random() < 0.4
        if device == "cuda":
            self.choices.rows = draw.choice([None, None, *STRATEGIES])
        self.choices.unroll = draw.choice([1, 4, 4, 8])
        share = draw.choice([0, 0, 0, 0.3, 1])
        self.choices.stores = [draw.random() < share for _ in range(MAX_STATEMENTS)]


def is_worth_kernels(reference):
    """Whether a best guess has kernels: for one operator only where ATen's is slow."""
    operators = {s.operator for s in reference.statements if s.operator not in VIEWS}
    return not (len(operators) == 1 and operators <= AS_FAST_ALONE)


def settings(moves, task, device, launches, has_convolutions):
    """Returns the lines of the toml block."""
    if device != "cuda":
        return []
    lines = []
    if moves.fast_math:
        lines.append("fast_math = true")
    if task["relaxed"] and moves.tf32:
        lines.append("tf32 = true")
    is_tuned = has_convolutions and moves.tunes
    if is_tuned:
        lines.append("cudnn_benchmark = true")
    if moves.graph is True or (moves.graph is None and launches > 1 and not is_tuned):
        lines.append("cuda_graph = true")
    return lines


def settings_of(lines):
    """Returns the names in these lines."""
    return [line.split(" ")[0] for line in lines]
