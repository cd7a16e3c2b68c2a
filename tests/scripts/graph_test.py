"""Tests that scripts/graph accepts arrows that run one way and names every other include."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

GRAPH = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "graph"


class Graph(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.room("leaf", "hone_room(hone_leaf SOURCES leaf.cpp)")
        self.room("user", "hone_room(hone_user SOURCES user.cpp LINK hone_leaf)")
        self.room("evaluation/inner", "hone_room(hone_inner SOURCES inner.cpp)")
        self.room("evaluation", "hone_room(hone_evaluation SOURCES door.cpp LINK hone_inner)")
        self.room("actors", "hone_room(hone_actors SOURCES actor.cpp LINK hone_evaluation)")
        self.source("user/user.cpp", "leaf/leaf.hpp")
        self.source("evaluation/door.hpp", "evaluation/inner/inner.hpp")
        self.source("actors/actor.cpp", "evaluation/door.hpp")

    def tearDown(self):
        self.folder.cleanup()

    def room(self, folder, text):
        (self.root / folder).mkdir(parents=True, exist_ok=True)
        (self.root / folder / "CMakeLists.txt").write_text(text + "\n")

    def source(self, path, *headers):
        text = "".join(f'#include "{header}"\n' for header in headers)
        (self.root / path).write_text(text)

    def run_graph(self, *options):
        return subprocess.run(
            [sys.executable, GRAPH, *options, self.root],
            capture_output=True,
            text=True,
            check=False,
        )

    def test_prints_the_folders_leaves_first(self):
        ended = self.run_graph()
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        lines = [line.split() for line in ended.stdout.splitlines()]
        self.assertIn(["user", "leaf"], lines)
        order = [line[0] for line in lines]
        self.assertLess(order.index("leaf"), order.index("user"))
        self.assertLess(order.index("evaluation/inner"), order.index("evaluation"))

    def test_prints_nothing_if_there_is_no_problem(self):
        ended = self.run_graph("--check")
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "", ""))

    def test_refuses_an_include_against_the_arrows(self):
        self.source("leaf/leaf.cpp", "user/user.hpp")
        ended = self.run_graph("--check")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("leaf/leaf.cpp includes user/user.hpp", ended.stderr)
        self.assertIn("cycle", ended.stderr)

    def test_refuses_an_include_of_a_library_that_is_not_linked(self):
        self.source("user/user.cpp", "evaluation/door.hpp")
        ended = self.run_graph("--check")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("user does not link evaluation", ended.stderr)

    def test_refuses_to_enter_evaluation_beside_its_door(self):
        self.source("actors/actor.cpp", "evaluation/inner/inner.hpp")
        ended = self.run_graph("--check")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("by its door only", ended.stderr)

    def test_refuses_libraries_that_link_each_other(self):
        (self.root / "leaf" / "CMakeLists.txt").write_text(
            "hone_room(hone_leaf SOURCES leaf.cpp LINK hone_user)\n"
        )
        ended = self.run_graph("--check")
        self.assertEqual(ended.returncode, 1)
        self.assertIn("libraries form a cycle", ended.stderr)


if __name__ == "__main__":
    unittest.main()
