"""Tests of tasks/synthesising/imported_names.py: drawn programs that look like imported ones."""

import ast
import builtins
import pathlib
import random
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tasks" / name) for name in ("synthesising", "importing")]

from drawing_programs import draw_program_of  # noqa: E402
from imported_names import rename_as_imported  # noqa: E402
from structure import Structure  # noqa: E402


class ImportedNames(unittest.TestCase):
    def pairs(self):
        """Yields references of one program, as drawn and as imported."""
        for number in range(60):
            p = draw_program_of(2, random.Random(number))
            before = p.reference()
            rename_as_imported(p, random.Random(number))
            yield before, p

    def test_do_not_change_what_is_computed(self):
        for before, p in self.pairs():
            self.assertEqual(Structure(before).canonical, Structure(p.reference()).canonical)

    def test_belong_to_statements_of_one_operator_each(self):
        for _, p in self.pairs():
            for statement in p.statements:
                node = ast.parse(statement).body[0].value
                inner = [n for n in ast.walk(node) if isinstance(n, (ast.Call, ast.BinOp))]
                self.assertLessEqual(len(inner), 1, statement)

    def test_are_distinct(self):
        for _, p in self.pairs():
            names = [t["name"] for t in p.inputs + p.parameters]
            names += [s.split(" = ")[0] for s in p.statements]
            self.assertEqual(len(set(names)), len(names), names)
            self.assertFalse(set(names) & set(dir(builtins)), names)

    def test_leave_each_shape_its_sizes(self):
        for _, p in self.pairs():
            for t in p.inputs + p.parameters:
                self.assertEqual(
                    [d for d in t["shape"] if isinstance(d, str) and d not in p.timed], []
                )


if __name__ == "__main__":
    unittest.main()
