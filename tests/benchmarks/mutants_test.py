"""Tests of benchmarks/mutants: which wrong programs are made, and which of them count as wrong."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANTS = ROOT / "benchmarks" / "mutants"
sys.path[:0] = [str(MUTANTS), str(ROOT / "tasks" / "importing")]

import branch_mutations  # noqa: E402
import distributions  # noqa: E402
import kernel_mutations  # noqa: E402
import operator_mutations  # noqa: E402
import precision_mutations  # noqa: E402
import reduction_mutations  # noqa: E402
import torch  # noqa: E402
import value_mutations  # noqa: E402
from classification import ACCURATE_UNITS, Classifier  # noqa: E402
from documents import document_of_program, read_documents  # noqa: E402
from errors import Reference, copied, widened  # noqa: E402
from operators import forward_of, outputs_of  # noqa: E402
from program import Program, normalized  # noqa: E402
from safetensors_files import read_safetensors, write_safetensors  # noqa: E402
from simplification import are_equal  # noqa: E402
from subject import Subject  # noqa: E402
from task_files import Task  # noqa: E402

TASK = """\
name = "small"
summary = "a layer"
reference = '''
def forward(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    t = torch.matmul(x, w) + b
    t = torch.relu(t)
    s = torch.sum(t, dim=1, keepdim=True)
    return t / (s + 1e-5)
'''
[[input]]
name = "x"
shape = ["N", "K"]
[[parameter]]
name = "w"
shape = ["K", 6]
[[parameter]]
name = "b"
shape = [6]
init = "constant(0)"
[[case]]
sizes = { N = 8, K = 5 }
timed = true
[[case]]
sizes = { N = 3, K = 4 }
"""
KERNEL = """\
## Code Implementation
```cuda
extern "C" __global__ void scale(const float* x, const float* b, float* out, int n, int m) {
    __shared__ float part[32];
    int row = blockIdx.x;
    float sum = 0;
    for (int col = threadIdx.x; col < m; col += blockDim.x)
        sum += x[row * m + col];
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int k = 16; k > 0; k /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, k);
    if (row >= n) return;
    out[row] = fmaxf(sum, 0.0f) + b[row];
}
```
```python
def forward(x: Tensor, b: Tensor) -> Tensor:
    out = torch.empty_like(b)
    launch("scale", [x.size(0)], [32], x, b, out, x.size(0), x.size(1))
    return out
```
"""


def task_of(text=TASK):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "small.toml")
        path.write_text(text)
        return Task(path)


def results_of(task, program, sizes, is_float64=False):
    arguments = distributions.draw(task, sizes, "declared")
    arguments = widened(arguments) if is_float64 else copied(arguments)
    return outputs_of(forward_of(program, is_float64=is_float64)(*arguments))


class Programs(unittest.TestCase):
    def test_flattening_keeps_what_a_program_computes(self):
        task = task_of()
        flat = Program(task.reference).text()
        self.assertIn("part = torch.matmul(x, w)", flat)
        for a, b in zip(
            results_of(task, task.reference, task.cases[0]), results_of(task, flat, task.cases[0])
        ):
            self.assertTrue(torch.equal(a, b))

    def test_names_do_not_matter_for_the_normal_form(self):
        one = "def forward(x: Tensor) -> Tensor:\n    y = x + 1.0\n    return y\n"
        other = "def forward(a: Tensor) -> Tensor:\n    b = a + 1.0\n    return b\n"
        self.assertEqual(normalized(one), normalized(other))
        self.assertNotEqual(normalized(one), normalized(other.replace("+", "-")))

    def test_loops_stay_as_they_are(self):
        text = (
            "def forward(x: Tensor) -> Tensor:\n    h = x[0] * 0.5\n"
            "    for i in range(x.size(0)):\n        h = h + x[i]\n    return h\n"
        )
        flat = Program(text).text()
        self.assertIn("for i in range(x.size(0)):\n        h = h + x[i]", flat)


class GraphMutations(unittest.TestCase):
    def setUp(self):
        self.subject = Subject(task_of())

    def made(self, family, kind, operator=None):
        """Returns the programs of a kind of mutation that run."""
        texts = [
            m.make().text()
            for m in family.mutations(self.subject)
            if m.kind == kind and operator in (None, m.operator)
        ]
        return [t for t in texts if self.subject.problem_of(t) is None]

    def test_every_family_makes_programs_that_run(self):
        for family, kind, part in (
            (operator_mutations, "bias_dropped", "t = part"),
            (operator_mutations, "clamp_dropped", "t_2 = t"),
            (operator_mutations, "eps_dropped", "s + 0.0"),
            (operator_mutations, "operator_replaced", "torch.gelu(t)"),
            (value_mutations, "input_replaced", "torch.zeros_like(x_given)"),
            (value_mutations, "value_slices_skipped", "zeroed(t_given, 1, kept_slices)"),
            (value_mutations, "output_stale", "torch.empty_like("),
            (reduction_mutations, "reduction_sampled", "torch.sum(sample(t_2, 1), dim=1"),
            (precision_mutations, "operands_rounded", "torch.bfloat16"),
            (precision_mutations, "product_of_pieces", "high(x), low(w)"),
            (branch_mutations, "right_for_timed_shape", "if not (x.size(0) == 8):"),
            (branch_mutations, "right_for_moderate_inputs", "torch.where((torch.std("),
        ):
            with self.subTest(kind=kind):
                texts = self.made(family, kind)
                self.assertTrue(any(part in text for text in texts), texts[:3])

    def test_no_mutation_of_another_layout_runs(self):
        self.assertIsNotNone(
            self.subject.problem_of(
                "def forward(x: Tensor, w: Tensor, b: Tensor) -> Tensor:\n    return x\n"
            )
        )

    def test_a_branch_on_the_shape_is_right_in_its_case_alone(self):
        task = self.subject.task
        for text in self.made(branch_mutations, "right_for_timed_shape", "the output is zero"):
            timed, odd = task.cases
            right = results_of(task, task.reference, timed)
            self.assertTrue(torch.equal(results_of(task, text, timed)[0], right[0]))
            self.assertEqual(results_of(task, text, odd)[0].count_nonzero(), 0)

    def test_rounding_cuts_off_digits_in_float64_as_well(self):
        text = self.made(precision_mutations, "output_rounded", "TF32")[0]
        (given,) = results_of(self.subject.task, text, self.subject.task.cases[0], is_float64=True)
        digits, _ = torch.frexp(given)
        self.assertTrue(torch.equal(digits * 2.0**11, torch.round(digits * 2.0**11)))
        (right,) = results_of(
            self.subject.task,
            self.subject.task.reference,
            self.subject.task.cases[0],
            is_float64=True,
        )
        self.assertFalse(torch.equal(given, right))


class KernelMutations(unittest.TestCase):
    def test_changes_every_part_of_a_kernel(self):
        document = read_documents(KERNEL, "scale")[0]
        found = {}
        for mutation in kernel_mutations.mutations(document):
            found.setdefault(mutation.kind, []).append(mutation.make())
        for kind, part in (
            ("barrier_removed", "part[threadIdx.x] = sum;\n    ;"),
            ("bound_changed", "col <= m"),
            ("bound_changed", "(row >= n)".replace("n)", "(n) - 1)")),
            ("loop_changed", "col += 2 * (blockDim.x)"),
            ("loop_changed", "col < (m) / 2"),
            ("accumulator_start", "float sum = 1.0f;"),
            ("index_offset", "x[(row * m + col) + 1]"),
            ("stride_changed", "row * (m - 1)"),
            ("shuffle_changed", "k > 1"),
            ("shuffle_changed", "int k = 8"),
            ("load_rounded", "reduced(x[row * m + col])"),
            ("bias_dropped", "out[row] = fmaxf(sum, 0.0f) ;"),
            ("guard_removed", "sum, k);\n    \n    out"),
            ("extreme_swapped", "fminf(sum, 0.0f)"),
            ("step_dropped", "col += blockDim.x)\n        ;"),
            ("grid_smaller", "[(x.size(0)) - 1]"),
        ):
            with self.subTest(kind=kind, part=part):
                texts = found.get(kind, [])
                self.assertTrue(any(part in text for text in texts), "\n".join(texts[:2]))

    def test_a_sweep_stands_for_a_document_per_value(self):
        swept = read_documents("sweep: A = 1 2, B = 3\n" + KERNEL.replace("32", "${A}${B}"), "k")
        self.assertEqual([d.name for d in swept], ["k A=1 B=3", "k A=2 B=3"])
        self.assertIn("part[23]", swept[1].blocks["cuda"])


class Verdicts(unittest.TestCase):
    """The verdicts of programs that the judge has accepted."""

    def verdict(self, expression, kind="output_scaled"):
        task = task_of()
        program = task.reference.replace("return t / (s + 1e-5)", f"return {expression}")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "small", "one.md")
            path.parent.mkdir()
            path.write_text(document_of_program(program))
            mutant = {
                "task": "small",
                "document": "one",
                "kind": kind,
                "source": "reference",
                "description": "",
            }
            return Classifier(pathlib.Path(folder), {"small": task}, None).classify(mutant)

    def test_the_same_graph_is_equivalent(self):
        verdict = self.verdict("torch.relu(t) / (s * 1.0 + 1e-5)")
        self.assertEqual((verdict.verdict, verdict.reason), ("equivalent", "its graph is the same"))

    def test_another_order_of_operations_is_equivalent(self):
        self.assertEqual(self.verdict("t * (1.0 / (s + 1e-5))").verdict, "equivalent")

    def test_an_error_below_rounding_is_accurate(self):
        self.assertEqual(self.verdict("t / (s + 1e-5) * (1.0 + 1e-8)").verdict, "accurate")

    def test_an_error_of_a_few_roundings_is_admitted(self):
        verdict = self.verdict("t / (s + 1e-5) * (1.0 + 1e-5)")
        self.assertEqual(verdict.verdict, "admitted")

    def test_an_error_above_rounding_is_a_hole_of_the_tolerance(self):
        verdict = self.verdict("t / (s + 1e-5) * (1.0 + 1e-4)")
        self.assertEqual((verdict.verdict, verdict.cause), ("hole", "tolerance"))
        self.assertGreater(verdict.units, ACCURATE_UNITS)

    def test_what_shows_only_for_other_inputs_is_a_hole_of_the_inputs(self):
        verdict = self.verdict("torch.where(torch.amax(torch.abs(x)) < 2e3, t / (s + 1e-5), 2 * t)")
        self.assertEqual((verdict.verdict, verdict.cause), ("hole", "inputs"))

    def test_a_constant_parameter_that_is_not_read_is_a_hole(self):
        whole = "torch.relu(torch.matmul(x, w))"
        verdict = self.verdict(
            f"{whole} / (torch.sum({whole}, dim=1, keepdim=True) + 1e-5)", "bias_dropped"
        )
        self.assertEqual((verdict.verdict, verdict.cause), ("hole", "tolerance"))

    def test_simplification_finds_no_equality_where_there_is_none(self):
        reference = task_of().reference
        self.assertTrue(are_equal(reference, Program(reference).text()))
        self.assertFalse(are_equal(reference, reference.replace("relu", "gelu")))
        self.assertFalse(are_equal(reference, reference.replace("dim=1", "dim=0")))

    def test_a_result_that_is_not_finite_is_infinitely_wrong(self):
        task = task_of()
        reference = Reference(task.reference, distributions.draw(task, task.cases[0], "declared"))
        nothing = [torch.full_like(t, torch.nan) for t in reference.native]
        self.assertEqual(reference.difference(nothing).units, float("inf"))
        self.assertLessEqual(reference.difference(reference.native).units, 1)


class Files(unittest.TestCase):
    def test_safetensors_are_read_as_they_were_written(self):
        tensors = {"0": torch.randn(3, 2), "1": torch.tensor([True, False]), "2": torch.arange(4)}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "file")
            write_safetensors(path, tensors)
            read = read_safetensors(path)
        self.assertEqual(list(read), list(tensors))
        self.assertTrue(all(torch.equal(read[name], tensors[name]) for name in tensors))

    def test_a_seed_makes_the_same_mutants_again(self):
        made = []
        with tempfile.TemporaryDirectory() as folder:
            task = pathlib.Path(folder, "small.toml")
            task.write_text(TASK)
            for number, seed in enumerate((1, 1, 2)):
                out = pathlib.Path(folder, str(number))
                words = [MUTANTS / "make.py", task, "--out", out, "--count", 20, "--seed", seed]
                subprocess.run(
                    [sys.executable, *map(str, words)], check=True, stdout=subprocess.DEVNULL
                )
                lines = (out / "mutants.jsonl").read_text().splitlines()
                texts = sorted(path.read_text() for path in out.rglob("*.md"))
                self.assertEqual(len(texts), len(lines), "a document for each line")
                self.assertEqual(len(set(texts)), 20, "no document twice")
                self.assertEqual({json.loads(line)["task"] for line in lines}, {"small"})
                made.append((lines, texts))
        self.assertEqual(made[0], made[1])
        self.assertNotEqual(made[0], made[2])


if __name__ == "__main__":
    unittest.main()
