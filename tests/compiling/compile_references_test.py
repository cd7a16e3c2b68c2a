"""Tests of tasks/compiling/compile_references.py without its compiler: the references of all tasks
under configs/ become modules that torch exports and that compute what TorchScript computes, and
compilers that still work end with the program that wanted them."""

import pathlib
import subprocess
import sys
import time
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


class RecurrentNetworks(unittest.TestCase):
    def test_are_refused_with_the_reason(self):
        source = (
            "def forward(x, h, w, u):\n"
            "    return torch.gru(x, h, [w, u], False, 1, 0.0, False, False, False)[0]\n"
        )
        module = compile_references.module_of({"reference": source}, "cpu")
        arguments = (torch.rand(9, 2, 5), torch.rand(1, 2, 7), torch.rand(21, 5), torch.rand(21, 7))
        with self.assertRaisesRegex(NotImplementedError, "leaves it to eager PyTorch"):
            module(*arguments)


STARTS_A_COMPILER = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
import compile_references
compile_references.lead_process_group()
compiler = subprocess.Popen(["sleep", "60"])
print(compiler.pid, flush=True)
compiler.wait()
"""


class Compilers(unittest.TestCase):
    def test_end_with_the_process_that_started_this_program(self):
        folder = str(ROOT / "tasks" / "compiling")
        starter = subprocess.Popen(
            ["sh", "-c", '"$0" -c "$1" "$2"; true', sys.executable, STARTS_A_COMPILER, folder],
            stdout=subprocess.PIPE,
        )
        compiler = int(starter.stdout.readline())
        starter.kill()
        starter.wait()
        end = time.monotonic() + 10
        while is_running(compiler) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertFalse(is_running(compiler))
        starter.stdout.close()


def is_running(process):
    try:
        state = pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


if __name__ == "__main__":
    unittest.main()
