"""Tests of tasks/synthesising/drawing_programs.py: programs run, and have the shapes they state."""

import pathlib
import random
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tasks" / name) for name in ("synthesising", "importing")]

import torch  # noqa: E402
from drawing_programs import draw_program, draw_program_of  # noqa: E402
from torchscript_text import runnable  # noqa: E402

PROGRAMS = 300


def arguments(p, case):
    """Yields arguments of the shapes that a case asks for. case: sizes by name."""
    for t in p.inputs + p.parameters:
        shape = p.in_case(case, t["shape"])
        if t["kind"] == "index":
            yield torch.zeros(shape, dtype=torch.int64)
        else:
            yield torch.rand(shape) + 0.5


class DrawnPrograms(unittest.TestCase):
    def programs(self):
        """Yields programs of all styles."""
        for number in range(PROGRAMS):
            p = draw_program(random.Random(number))
            if p is not None:
                yield p

    def test_compute_results_of_the_shapes_that_they_state(self):
        for p in self.programs():
            forward = torch.jit.CompilationUnit(runnable(p.reference())).forward
            case = p.small[0]
            with torch.no_grad():
                made = forward(*arguments(p, case))
            made = made if isinstance(made, tuple) else (made,)
            stated = [p.in_case(case, v.shape) for v in p.outputs]
            self.assertEqual([list(m.shape) for m in made], stated, p.reference())

    def test_use_every_argument(self):
        for p in self.programs():
            body = p.reference().split("\n", 1)[1]
            for t in p.inputs + p.parameters:
                self.assertRegex(body, rf"\b{t['name']}\b")

    def test_of_one_operator_are_some_and_not_most(self):
        single = sum(len(p.words) == 1 for p in self.programs())
        self.assertGreater(single, PROGRAMS // 50)
        self.assertLess(single, PROGRAMS // 5)

    def test_of_a_tier_are_found(self):
        for tier in (1, 2):
            self.assertEqual(draw_program_of(tier, random.Random(1)).tier, tier)


if __name__ == "__main__":
    unittest.main()
