"""Tests that scripts/check finds long lines, files and functions, and accepts a stated reason. It
also finds patterns that backtrack, and phrases that make readers stop."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check"
sys.dont_write_bytecode = True


def load_check(root):
    loader = importlib.machinery.SourceFileLoader("check", str(SCRIPT))
    spec = importlib.util.spec_from_loader("check", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.ROOT = root
    return module


class Check(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.check = load_check(self.root)

    def tearDown(self):
        self.folder.cleanup()

    def problems(self, name, text, find):
        path = self.root / name
        path.write_text(text)
        found = []
        getattr(self.check, find)(path, found)
        return found

    def cpp(self, head, statements):
        return head + " {\n" + "  step();\n" * statements + "}\n"

    def test_finds_a_long_function(self):
        text = self.cpp("int run(int argc)", 60)
        self.assertEqual(
            self.problems("a.cpp", text, "check_lengths"), ["a.cpp:1: a function of 62 lines"]
        )
        self.assertEqual(
            self.problems("a.cpp", self.cpp("int run(int argc)", 58), "check_lengths"), []
        )

    def test_finds_a_long_function_whose_head_takes_several_lines(self):
        text = self.cpp("int run(int argc,\n        char** argv)", 60)
        self.assertEqual(len(self.problems("a.cpp", text, "check_lengths")), 1)

    def test_finds_a_long_function_of_a_class(self):
        body = self.cpp("int run()", 60).replace("\n", "\n  ").rstrip()
        text = "class a {\n public:\n  " + body + "\n};\n"
        self.assertEqual(len(self.problems("a.hpp", text, "check_lengths")), 1)

    def test_accepts_a_reason(self):
        text = "// Longer than 60 lines: a table.\n" + self.cpp("int run(int argc)", 60)
        self.assertEqual(self.problems("a.cpp", text, "check_lengths"), [])

    def test_finds_a_long_function_in_python(self):
        text = "def run():\n" + "    step()\n" * 60
        self.assertEqual(len(self.problems("a.py", text, "check_lengths")), 1)
        reason = "# Longer than 60 lines: a table.\n"
        self.assertEqual(self.problems("a.py", reason + text, "check_lengths"), [])

    def test_finds_a_long_file(self):
        text = "int x;\n" * 401
        self.assertEqual(self.problems("a.cpp", text, "check_lengths"), ["a.cpp: 401 lines"])

    def test_finds_a_long_line(self):
        self.assertEqual(
            self.problems("a.cpp", "x" * 101 + "\n", "check_width"), ["a.cpp:1: 101 columns"]
        )

    def test_excepts_tables_links_and_code_of_markdown(self):
        wide = "x" * 101
        text = f"| {wide} |\n[{wide}](x)\n```\n{wide}\n```\n{wide}\n"
        self.assertEqual(self.problems("a.md", text, "check_width"), ["a.md:6: 101 columns"])

    def test_finds_patterns_that_backtrack(self):
        for line in (
            "#include <regex>",
            "# include <regex>",
            'static const std::regex own("x+");',
            "if (std::regex_match(line, own)) {",
            "std::sregex_iterator next(a, b, own);",
        ):
            self.assertEqual(
                self.problems("a.cpp", f"int x;\n{line}\n", "check_patterns"),
                ["a.cpp:2: <regex> instead of RE2"],
            )

    def test_accepts_other_patterns(self):
        text = "#include <re2/re2.h>\nstatic const RE2 own;  // <regex> would recurse\n"
        self.assertEqual(self.problems("a.cpp", text, "check_patterns"), [])

    def test_finds_phrases_and_says_what_to_write_instead(self):
        phrases = (
            "// It runs beside the learner.",
            "// A process of its own.",
            "// Used in place of it.",
            "// The learner is told.",
            "// Whoever asks: whoever waits.",
            "  // What a node gets.",
            "# What the judge does.",
            "// It waits for ever.",
        )
        for line in phrases:
            found = self.problems("a.cpp", "int a;\n" + line + "\n", "check_language")
            self.assertEqual(len(found), 1, line)
            self.assertRegex(found[0], r"^a\.cpp:2: .*; instead: ")

    def test_accepts_phrases_that_only_look_alike(self):
        lines = ("// Returns what a node sent.", "int beside_all = 0;", "// For every task.")
        for line in lines:
            self.assertEqual(self.problems("a.cpp", line + "\n", "check_language"), [], line)


if __name__ == "__main__":
    unittest.main()
