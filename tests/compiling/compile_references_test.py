"""Tests of tasks/compiling/compile_references.py without its compiler: the references of all tasks
under configs/ become modules that torch exports and that compute what TorchScript computes."""

import pathlib
import sys
import tomllib
import unittest

import torch

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


if __name__ == "__main__":
    unittest.main()
