"""Tests of tasks/teaching/dims.py: the sizes that windows leave, and their derivations."""

import itertools
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tasks" / "teaching"))

import torch  # noqa: E402
from dims import Dim, constant_dim, transposed_window_size, window_size  # noqa: E402

SIDES = [Dim((9, 14), "H"), Dim((10, 15), "H + 1"), Dim((8, 8), "H")]


def convolved(side, kernel, stride, padding, dilation):
    x, w = torch.empty(1, 1, side, device="meta"), torch.empty(1, 1, kernel, device="meta")
    return torch.conv1d(x, w, None, stride, padding, dilation).size(2)


def transposed(side, kernel, stride, padding, more, dilation):
    x, w = torch.empty(1, 1, side, device="meta"), torch.empty(1, 1, kernel, device="meta")
    return torch.conv_transpose1d(x, w, None, stride, padding, more, 1, dilation).size(2)


class Sizes(unittest.TestCase):
    def check(self, side, found, text, expected):
        self.assertEqual(list(found.values), expected)
        self.assertEqual(text.split(" = ")[-1], found.text)
        for step in text.split(" = "):
            values = [eval(step, {"H": v}) for v in (9, 14)]
            self.assertEqual(values, expected, text)

    def test_of_windows_are_those_of_torch_at_every_step(self):
        for side, kernel, stride, padding, dilation in itertools.product(
            SIDES, (1, 2, 3, 4), (1, 2, 3), (0, 1, 2), (1, 2)
        ):
            found, text = window_size(side, kernel, stride, padding, dilation)
            facts = kernel, stride, padding, dilation
            self.check(side, found, text, [convolved(v, *facts) for v in side.values])

    def test_of_transposed_convolutions_are_those_of_torch_at_every_step(self):
        for side, kernel, stride, padding, more, dilation in itertools.product(
            SIDES, (2, 3, 4), (1, 2, 3), (0, 1), (0, 1), (1, 2)
        ):
            if more >= max(stride, dilation):
                continue
            found, text = transposed_window_size(side, kernel, stride, padding, more, dilation)
            facts = kernel, stride, padding, more, dilation
            self.check(side, found, text, [transposed(v, *facts) for v in side.values])

    def test_take_one_operation_a_step(self):
        side = Dim((9, 14), "H")
        self.assertEqual(
            window_size(side, 3, 2, 1, 2)[1],
            "(H + 2 * 1 - 2 * (3 - 1) + 2 - 1) // 2 = (H + 2 - 4 + 1) // 2 = (H - 1) // 2",
        )
        self.assertEqual(window_size(side, 1, 1, 0, 1)[1], "H")
        self.assertEqual(
            window_size(constant_dim(30, 2), 3, 2, 1, 1)[1],
            "(30 + 2 * 1 - (3 - 1) + 2 - 1) // 2 = (30 + 2 - 2 + 1) // 2 = 31 // 2 = 15",
        )


if __name__ == "__main__":
    unittest.main()
