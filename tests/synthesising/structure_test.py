"""Tests of tasks/synthesising/structure.py: what counts as the same structure, and how similar
others are."""

import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tasks" / name) for name in ("synthesising", "importing")]

from structure import Structure, similarity  # noqa: E402


def program(*lines, arguments="x: Tensor, w: Tensor"):
    body = "\n".join(f"    {line}" for line in lines)
    return Structure(f"def forward({arguments}) -> Tensor:\n{body}\n")


LAYER = program("t = torch.matmul(x, w)", "return torch.relu(t) + 1.0")


class Structures(unittest.TestCase):
    def test_names_do_not_matter(self):
        renamed = program(
            "value = torch.matmul(left, right)",
            "return torch.relu(value) + 1.0",
            arguments="left: Tensor, right: Tensor",
        )
        self.assertEqual(renamed.canonical, LAYER.canonical)
        self.assertEqual(similarity(renamed, LAYER), 1)

    def test_numbers_views_and_other_names_of_an_operator_do_not_matter(self):
        other = program("return torch.add(torch.relu(torch.mm(x, w).view(-1)), 0.5)")
        self.assertEqual(other.canonical, LAYER.canonical)

    def test_in_place_forms_do_not_matter(self):
        other = program("t = torch.matmul(x, w)", "t = t.relu_()", "return t.add_(2.0)")
        self.assertEqual(other.canonical, LAYER.canonical)

    def test_the_order_of_a_sum_does_not_matter(self):
        one = program("return torch.relu(x) + torch.tanh(w)")
        other = program("return torch.tanh(w) + torch.relu(x)")
        self.assertEqual(one.canonical, other.canonical)

    def test_another_operator_matters(self):
        other = program("t = torch.matmul(x, w)", "return torch.tanh(t) + 1.0")
        self.assertNotEqual(other.canonical, LAYER.canonical)
        self.assertLess(similarity(other, LAYER), 0.5)
        self.assertGreater(similarity(other, LAYER), 0)

    def test_another_order_of_operators_matters(self):
        other = program("t = torch.matmul(torch.relu(x) + 1.0, w)", "return t")
        self.assertNotEqual(other.canonical, LAYER.canonical)
        self.assertLess(similarity(other, LAYER), 0.8)

    def test_what_is_not_used_does_not_matter(self):
        other = program("t = torch.matmul(x, w)", "u = torch.exp(t)", "return torch.relu(t) + 1.0")
        self.assertEqual(other.canonical, LAYER.canonical)

    def test_a_part_of_a_longer_program_is_less_similar_than_the_whole(self):
        longer = program(
            "t = torch.relu(torch.matmul(x, w)) + 1.0",
            "return torch.sum(torch.exp(t), dim=[1]) * 3.0",
        )
        self.assertLess(similarity(longer, LAYER), 0.6)
        self.assertGreater(similarity(longer, LAYER), 0.2)

    def test_programs_without_common_operators_have_nothing_in_common(self):
        self.assertEqual(similarity(program("return torch.sin(x)"), LAYER), 0)

    def test_a_reference_that_does_not_compile_is_refused(self):
        with self.assertRaises(RuntimeError):
            program("return nothing")


if __name__ == "__main__":
    unittest.main()
