"""Tests of tasks/teaching/stream.py: what its lines depend on, and what tasks and documents hold."""

import ast
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tasks" / "teaching" / "stream.py"
sys.path[:0] = [str(ROOT / "tasks" / name) for name in ("teaching", "synthesising", "importing")]

from lesson import Lesson  # noqa: E402
from stream import MAX_FURTHER_KERNELS, Stream, arguments  # noqa: E402
from structure import Structure  # noqa: E402

# Work in C that changes nothing.
NO_OP = re.compile(r"[*/] 1(\.0f)?(?![\w.])|[+-] 0(\.0f)?(?![\w.])|\b0 [*+]|\b1(\.0f)? \*")
# Facts that are known once the code is there.
COUNT = re.compile(r"\b\d+ operat|operations? fused")
SECTIONS = "## Performance Analysis\n", "\n## Algorithm Design\n", "\n## Code Implementation\n"


def tier_of(one):
    return tomllib.loads(one["task"])["tier"]


def structure_of(document):
    """Returns what distinguishes how variants divide the work: kernels, and how rows are shared."""
    launches = re.findall(r'launch\("([a-z]+)_', block(document, "python"))
    marks = r"over_(?:warp|block|tile)|start = \(blockIdx"
    return tuple(launches), frozenset(re.findall(marks, block(document, "cuda")))


def command(*options, seed=5):
    return [sys.executable, "-B", str(PROGRAM), "--seed", str(seed), *map(str, options)]


def lines(*options, seed=5, hash_seed="0"):
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    ended = subprocess.run(
        command(*options, seed=seed), env=environment, capture_output=True, text=True, check=True
    )
    return ended.stdout.splitlines()


def line(number, *options, seed=5):
    words = ["--seed", str(seed), *map(str, options)]
    return Stream(arguments(words)).line(number)


def block(document, language):
    """Returns the text of a document's block, or "" if there is none."""
    found = re.search(rf"```{language}\n(.*?)```\n", document, re.DOTALL)
    return found[1] if found else ""


def described(text):
    """Returns a task file as the teacher receives it."""
    task = tomllib.loads(text)
    tensors = [
        {
            "name": t["name"],
            "shape": t["shape"],
            "dtype": t.get("dtype", "float32"),
            "is_parameter": kind == "parameter",
        }
        for kind in ("input", "parameter")
        for t in task.get(kind, [])
    ]
    cases = [{"sizes": c["sizes"], "timed": c.get("timed", False)} for c in task["case"]]
    return {
        "name": task["name"],
        "reference": task["reference"],
        "relaxed": task.get("precision") == "relaxed",
        "tensors": tensors,
        "cases": cases,
    }


class Lines(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = lines("--count", 60, "--tier-1-share", 0.5)
        cls.all = [json.loads(text) for text in cls.texts]
        cls.tasks = [one for one in cls.all if "skipped" not in one]

    def test_have_every_number_and_mostly_tasks(self):
        self.assertEqual([one["number"] for one in self.all], list(range(60)))
        self.assertGreater(len(self.tasks), 50)
        self.assertGreater(len({one["structure"] for one in self.tasks}), 50)

    def test_are_the_same_for_the_same_seed_alone(self):
        again = lines("--count", 8, "--tier-1-share", 0.5, hash_seed="7")
        self.assertEqual(again, self.texts[:8])
        for before in self.tasks[:8]:
            other = line(before["number"], "--tier-1-share", 0.5, seed=6)
            self.assertNotEqual(other.get("task"), before["task"])

    def test_do_not_depend_on_how_workers_share_the_numbers(self):
        of_worker = lines("--first", 1, "--step", 3, "--count", 4, "--tier-1-share", 0.5)
        self.assertEqual(of_worker, self.texts[1:12:3])

    def test_leave_out_excluded_structures(self):
        excluded = {one["structure"] for one in self.tasks[:5]}
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "excluded"
            references = [tomllib.loads(one["task"])["reference"] for one in self.tasks[:5]]
            file.write_text(json.dumps(references))
            left = lines("--count", 10, "--tier-1-share", 0.5, "--exclude", file)
        self.assertEqual(len(left), 10)
        for text, before in zip(left, self.all):
            one = json.loads(text)
            if before.get("structure") in excluded:
                self.assertEqual(set(one), {"number", "skipped"})
            else:
                self.assertEqual(one, before)

    def test_have_the_structure_of_the_reference(self):
        for one in self.tasks[:10]:
            reference = tomllib.loads(one["task"])["reference"]
            self.assertEqual(one["structure"], Structure(reference).canonical)

    def test_say_the_tier(self):
        self.assertEqual({tier_of(one) for one in self.tasks}, {1, 2})
        for one in self.tasks:
            task = tomllib.loads(one["task"])
            body = task["reference"].splitlines()[1:-1]
            ranks = [len(t["shape"]) for t in task["input"]]
            if task["tier"] == 1:
                if re.match(r"    t\d+ = ", body[0]):  # imported ones have more
                    self.assertLessEqual(len(body), 5)
                self.assertLessEqual(max(ranks), 2)
                self.assertNotRegex(task["reference"], r"conv\d|_pool\d|instance_norm")
            else:
                self.assertTrue(len(body) > 5 or max(ranks) > 2, one["name"])

    def test_have_only_the_tier_that_is_asked_for(self):
        for share, tier in ((1, 1), (0, 2)):
            made = [line(number, "--tier-1-share", share) for number in range(8)]
            self.assertEqual({tier_of(one) for one in made if "task" in one}, {tier})

    def test_change_the_mix_of_tiers_by_number(self):
        mix = ("--tier-1-share", 1, "--tier-1-last-share", 0, "--mix-numbers", 40)
        made = [line(number, *mix) for number in range(0, 60)]
        tiers = [(m["number"], tier_of(m)) for m in made if "task" in m]
        early = [tier for number, tier in tiers if number < 20]
        late = [tier for number, tier in tiers if 20 <= number < 40]
        self.assertGreater(early.count(1) / len(early), late.count(1) / len(late))
        self.assertEqual({tier for number, tier in tiers if number >= 40}, {2})

    def test_have_a_timed_case_and_two_small_ones(self):
        for one in self.tasks:
            cases = tomllib.loads(one["task"])["case"]
            self.assertEqual([c.get("timed", False) for c in cases], [True, False, False])

    def test_have_the_documents_that_the_teacher_writes_for_the_task_file(self):
        for one in self.tasks[:10]:
            best = Lesson(described(one["task"]), "cuda").variant(0, 5).text
            self.assertEqual(one["documents"][0], best)

    def test_have_distinct_documents_whose_blocks_can_be_read(self):
        for one in self.tasks:
            self.assertEqual(len(set(one["documents"])), len(one["documents"]))
            self.assertTrue(1 <= len(one["documents"]) <= 4)
            for document in one["documents"]:
                places = [document.find(section) for section in SECTIONS]
                self.assertEqual(places[0], 0)
                self.assertEqual(places, sorted(places))
                tomllib.loads(block(document, "toml"))
                function = ast.parse(block(document, "python")).body[-1]
                self.assertEqual(function.name, "forward")

    def test_have_documents_with_few_kernels_more_than_the_best_guess(self):
        counts = [[d.count("__global__") for d in one["documents"]] for one in self.tasks]
        self.assertTrue(all(max(of) <= of[0] + MAX_FURTHER_KERNELS for of in counts), counts)
        self.assertGreater(sum(len(of) for of in counts), 2.5 * len(counts))

    def test_have_documents_without_no_ops_and_counts(self):
        documents = [d for one in self.tasks for d in one["documents"]]
        self.assertTrue(any(block(d, "cuda") for d in documents))
        for document in documents:
            self.assertNotRegex(block(document, "cuda"), NO_OP)
            self.assertNotRegex(document, COUNT)

    def test_have_a_plan_that_names_what_the_code_calls(self):
        for one in self.tasks:
            reference = tomllib.loads(one["task"])["reference"]
            statements = set(re.findall(r"^    (\w+) = ", reference, re.MULTILINE))
            for document in one["documents"]:
                plan = document.split(SECTIONS[1])[1].split(SECTIONS[2])[0]
                launches = re.findall(
                    r'launch\("(\w+)", \[.*?\], \[.*?\], (.*)\)$',
                    block(document, "python"),
                    re.MULTILINE,
                )
                for name, passed in launches:
                    said = re.search(rf"\b{name}: (?:([^>]*?) of )?([^>]*?) -> (\w+) \[", plan)
                    self.assertTrue(said, (name, plan))
                    tensors = {*said[2].split(", "), said[3]}
                    self.assertTrue(tensors <= set(passed.split(", ")), (plan, passed))
                    computed = {s for s in (said[1] or "").split(", ") if s[:4] != "part"}
                    self.assertTrue(computed - {""} <= statements, (computed, statements))

    def test_have_a_plan_that_says_what_the_threads_run_over(self):
        extent = re.compile(r"-> (\w+) \[([^\]]*)\], (?:(.*?) elements|(.*?) rows? of (.*?)), ")
        found = 0
        for one in self.tasks:
            sizes = tomllib.loads(one["task"])["case"][0]["sizes"]

            def value(text, sizes=sizes):
                return eval(text, {"__builtins__": {}}, sizes)

            for document in one["documents"]:
                plan = document.split(SECTIONS[1])[1].split(SECTIONS[2])[0]
                host = block(document, "python")
                for out, shape, elements, rows, length in extent.findall(plan):
                    self.assertIn(f"{out} = torch.empty([{shape}], ", host)
                    if out.startswith("made_") or "." in shape + elements + rows + length:
                        continue
                    size = math.prod(value(f"[{shape}]"))
                    if elements:
                        self.assertEqual(size, value(elements), plan)
                    else:
                        self.assertIn(size, (value(rows), value(rows) * value(length)), plan)
                    found += 1
        self.assertGreater(found, 50)

    def test_say_sizes_by_the_symbols_of_the_task(self):
        for one in self.tasks:
            task = tomllib.loads(one["task"])
            symbols = list(task["case"][0]["sizes"])
            for document in one["documents"]:
                host = block(document, "python")
                found = re.findall(r"^    ([A-Z]\w*) = \w+\.size\(\d\)$", host, re.MULTILINE)
                self.assertTrue(set(found) <= set(symbols), (found, symbols))
                for parameters in re.findall(r"void \w+\((.*)\)", block(document, "cuda")):
                    sizes = [p.split(" ")[-1] for p in parameters.split(", ") if "*" not in p]
                    self.assertEqual(sizes[len(sizes) - len(found) :], found)


CHAIN = {
    "name": "chain",
    "reference": "def forward(x: Tensor) -> Tensor:\n"
    "    t0 = torch.relu(x)\n"
    "    t1 = torch.sum(t0, dim=1)\n"
    "    t2 = t1 * 2.0\n"
    "    return t2\n",
    "relaxed": False,
    "tensors": [{"name": "x", "shape": ["N", 300], "dtype": "float32", "is_parameter": False}],
    "cases": [{"sizes": {"N": 64}, "timed": True}],
}


NORMS = {
    "name": "norms",
    "reference": "def forward(x: Tensor, y: Tensor) -> Tensor:\n"
    "    t0 = torch.sqrt(x * torch.sigmoid(y) + 1.0)\n"
    "    t1 = torch.tanh(t0) * y\n"
    "    t2 = t1 - torch.mean(t1, dim=[1], keepdim=True)\n"
    "    t3 = torch.mean(t2 * t2, dim=[1], keepdim=True)\n"
    "    return t2 * torch.rsqrt(t3 + 1e-5)\n",
    "relaxed": False,
    "tensors": [
        {"name": n, "shape": ["N", 300], "dtype": "float32", "is_parameter": False} for n in "xy"
    ],
    "cases": [{"sizes": {"N": 64}, "timed": True}],
}


class Rows(unittest.TestCase):
    def setUp(self):
        self.code = block(Lesson(NORMS, "cuda").variant(0, 1).text, "cuda")

    def test_use_the_same_names_in_each_pass(self):
        self.assertEqual(self.code.count("for ("), 3)
        self.assertEqual(self.code.count("const float v_t1 = v_part_4 * v_y;"), 3)
        self.assertEqual(len(re.findall(r"v_t2 = v_t1 - \w+;", self.code)), 2)

    def test_compute_in_front_of_a_loop_what_does_not_change_in_it(self):
        for loop in re.findall(r"^  for .*?^  }", self.code, re.DOTALL | re.MULTILINE):
            self.assertNotRegex(loop, r"rsqrtf|\.total /")
        self.assertRegex(self.code, r"(?m)^  const float \w+ = r_t3\.total|^  .*rsqrtf")


class Variants(unittest.TestCase):
    def test_differ_in_structure(self):
        counts = []
        for number in range(30):
            task = described(line(number)["task"])
            if task["reference"].count(" = ") < 3:
                continue  # of a single operator there is little to vary
            lesson = Lesson(task, "cuda")
            variants, _ = lesson.variants(range(3, 15), 1, 12)
            documents = [v.text for v in variants]
            counts.append(len({structure_of(d) for d in documents}))
        self.assertGreaterEqual(sum(counts) / len(counts), 4, counts)

    def test_store_each_result_where_all_are_chosen(self):
        lesson = Lesson(CHAIN, "cuda")
        launches = {
            block(lesson.variant(n, 1).text, "python").count("launch(") for n in range(3, 60)
        }
        self.assertLessEqual({1, 3}, launches)
        self.assertTrue(all(1 <= count <= 3 for count in launches - {0}), launches)


class Streams(unittest.TestCase):
    def test_end_quietly_when_nobody_reads(self):
        with tempfile.TemporaryFile("w+") as errors:
            with subprocess.Popen(command(), stdout=subprocess.PIPE, stderr=errors) as process:
                self.assertEqual(json.loads(process.stdout.readline())["number"], 0)
                process.stdout.close()
                self.assertEqual(process.wait(timeout=120), 0)
            errors.seek(0)
            self.assertEqual(errors.read(), "")


if __name__ == "__main__":
    unittest.main()
