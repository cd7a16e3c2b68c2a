"""Tests of tasks/compiling/compile_references.py without its compiler: the references of all tasks
under configs/ become modules that torch exports and that compute what TorchScript computes, and
recurrent networks on GPUs stay one operator."""

import pathlib
import sys
import tomllib
import unittest

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tasks" / "compiling"))

import compile_references  # noqa: E402


def small_case(task):
    """Returns the sizes of the case whose tensors have the fewest elements."""
    return min(
        (case.get("sizes", {}) for case in task["case"]),
        key=lambda sizes: sum(sizes.values()),
    )


def tensor(spec, sizes):
    torch.manual_seed(len(spec["name"]))
    shape = [sizes[n] if isinstance(n, str) else n for n in spec["shape"]]
    dtype = getattr(torch, spec.get("dtype", "float32"))
    if not dtype.is_floating_point:
        return torch.ones(shape, dtype=dtype)
    return torch.rand(shape).add(0.5).to(dtype)


class EveryReference(unittest.TestCase):
    def test_is_exported_and_computes_what_torchscript_computes(self):
        files = sorted(ROOT.glob("configs/**/tasks/*.toml"))
        self.assertGreater(len(files), 20)
        for file in files:
            task = tomllib.loads(file.read_text())
            with self.subTest(task["name"]), torch.no_grad():
                specs = task["input"] + task.get("parameter", [])
                arguments = tuple(tensor(spec, small_case(task)) for spec in specs)
                job = {"reference": task["reference"]}
                module = compile_references.module_of(job, "cpu")
                exported = torch.export.export(module, arguments)
                found = exported.module()(*arguments)
                expected = torch.jit.CompilationUnit(task["reference"]).forward(*arguments)
                torch.testing.assert_close(found, expected)


class RecurrentNetworks(unittest.TestCase):
    """References for GPUs, exported without one: their tensors have shapes and no contents."""

    SIZES = {"input": 5, "hidden": 7, "time": 300, "batch": 2}

    def export(self, source, gates):
        """Returns the operators that the lowered reference calls and the shapes of its results."""
        s = self.SIZES
        shapes = [
            [s["time"], s["batch"], s["input"]],
            [1, s["batch"], s["hidden"]],
            [gates * s["hidden"], s["input"]],
            [gates * s["hidden"], s["hidden"]],
        ]
        with FakeTensorMode():
            arguments = tuple(torch.empty(shape, device="cuda") for shape in shapes)
        module = compile_references.module_of({"reference": source}, "cuda")
        with torch.no_grad():
            exported = torch.export.export(module, arguments)
        lowered = exported.run_decompositions()
        outputs = [node.meta["val"].shape for node in lowered.graph.output_node().args[0]]
        called = [n.target for n in lowered.graph.nodes if n.op == "call_function"]
        return called, outputs

    def test_are_one_call_of_cudnn_and_not_a_loop_over_time(self):
        networks = {
            "lstm": (4, "[h, h]", "o, h, c"),
            "gru": (3, "h", "o, h"),
            "rnn_tanh": (1, "h", "o, h"),
        }
        for name, (gates, state, results) in networks.items():
            with self.subTest(name):
                source = (
                    "def forward(x, h, w, u):\n"
                    f"    {results} = torch.{name}(x, {state}, [w, u], False, 1, 0.0, False, False,"
                    f" False)\n    return {results}\n"
                )
                called, outputs = self.export(source, gates)
                self.assertEqual(called.count(torch.ops.aten._cudnn_rnn.default), 1)
                self.assertLess(len(called), 20)
                s = self.SIZES
                self.assertEqual(tuple(outputs[0]), (s["time"], s["batch"], s["hidden"]))
                for state_shape in outputs[1:]:
                    self.assertEqual(tuple(state_shape), (1, s["batch"], s["hidden"]))


if __name__ == "__main__":
    unittest.main()
