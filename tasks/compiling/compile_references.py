"""Compiles references ahead of time with Inductor, PyTorch's compiler, for LibTorch to run.

Standard input is one JSON object:
    device: "cuda" or "cpu".
    workers: the number of processes that compile at a time.
    max_autotune: True to have Inductor measure its choices on the device, one after another.
    cache: a folder for Inductor's own files.
    jobs: a list of objects with
        reference: the source of the reference, whose function is `forward`.
        tensors: the shape and dtype of each argument, such as [[16, 4], "float32"].
        file: the shared object to write.

Standard output is one JSON object per job, as soon as it is done: its number, the seconds that it
took, and an error, which is empty if the file was written.
"""

import ctypes
import json
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time

# torch.compile leaves these to eager PyTorch, and Inductor alone unrolls them over all time steps.
RECURRENT_NETWORKS = {"gru", "lstm", "rnn_relu", "rnn_tanh"}


class Operators:
    """The name `torch` of a reference: every ATen operator, on one device."""

    def __init__(self, torch, device):
        self._torch, self._device = torch, device

    def __getattr__(self, name):
        if name in RECURRENT_NETWORKS:
            raise NotImplementedError(
                f"Inductor does not compile torch.{name}: torch.compile leaves it to eager PyTorch"
            )
        found = getattr(self._torch.ops.aten, name, None) if name != "tensor" else None
        is_factory = name == "tensor" if found is None else makes_tensors(found)
        found = getattr(self._torch, name) if found is None else found
        if not is_factory:
            return found
        return lambda *args, **kwargs: found(*args, **{**kwargs, "device": self._device})


def makes_tensors(operator):
    """Returns True if an operator has a form that takes a device and no tensors."""
    schemas = [getattr(operator, overload)._schema for overload in operator.overloads()]
    return any(
        any(a.name == "device" for a in s.arguments)
        and not any("Tensor" in str(a.type) for a in s.arguments)
        for s in schemas
    )


def module_of(job, device):
    """Returns the reference as a module, whose parameters are arguments."""
    import math
    import typing

    import torch

    names = {n: getattr(typing, n) for n in ("Dict", "List", "Optional", "Tuple")}
    names |= {"torch": Operators(torch, device), "F": torch.nn.functional, "math": math}
    names["Tensor"] = torch.Tensor
    source = "from __future__ import annotations\n" + job["reference"]
    exec(compile(source, "reference", "exec"), names)

    class Reference(torch.nn.Module):
        def forward(self, *args):
            return names["forward"](*args)

    return Reference()


def compile_job(job, settings):
    """Writes the file of a job, or nothing. Its arguments take no memory: their shapes matter."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

    device = settings["device"]
    unfinished = f"{job['file']}.unfinished.so"
    with FakeTensorMode():
        arguments = tuple(
            torch.empty(shape, dtype=getattr(torch, dtype), device=device)
            for shape, dtype in job["tensors"]
        )
    with torch.no_grad():
        exported = torch.export.export(module_of(job, device), arguments)
        torch._inductor.aot_compile(
            exported.module(),
            arguments,
            options={
                "aot_inductor.output_path": unfinished,
                "aot_inductor.embed_kernel_binary": device == "cuda",
                "max_autotune": settings["max_autotune"],
                "compile_threads": 1,
            },
        )
    os.replace(unfinished, job["file"])


def end_with_parent():
    """Has the parent's death end the process group, to which Inductor's own compilers belong.

    Python handles the signal when native code returns to it, so a kernel that LLVM works on is
    still finished.
    """
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    signal_at_its_death = 1  # PR_SET_PDEATHSIG
    ctypes.CDLL(None).prctl(signal_at_its_death, signal.SIGTERM)


def work(connection, settings):
    """Compiles the jobs whose numbers arrive, and answers with seconds and an error for each."""
    end_with_parent()
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = settings["cache"]
    # What torch and compilers print does not belong between the answers.
    os.dup2(2, 1)
    import torch

    torch.set_num_threads(1)
    while (number := connection.recv()) is not None:
        begin, error = time.monotonic(), ""
        try:
            compile_job(settings["jobs"][number], settings)
        except Exception as failure:
            error = " ".join(f"{type(failure).__name__}: {failure}".split())[:400]
        torch.compiler.reset()
        connection.send((time.monotonic() - begin, error))


class Worker:
    """A process that compiles one job after another."""

    def __init__(self, settings):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(theirs, settings), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, number):
        self.number = number
        self.connection.send(number)

    def answer(self):
        """Returns the seconds and the error of its job. After None the process has ended."""
        try:
            return self.connection.recv()
        except EOFError:
            return None


def lead_process_group():
    """Gives this process a separate group, which ends with the parent."""
    os.setpgid(0, 0)
    end_with_parent()


def main():
    lead_process_group()
    settings = json.load(sys.stdin)
    waiting = list(reversed(range(len(settings["jobs"]))))
    count = 1 if settings["max_autotune"] else min(settings["workers"], len(waiting))
    workers = {}
    for _ in range(count):
        worker = Worker(settings)
        workers[worker.connection] = worker
        worker.give(waiting.pop())
    while workers:
        for ready in multiprocessing.connection.wait(list(workers)):
            worker = workers.pop(ready)
            found = worker.answer()
            seconds, error = found or (0, "the process that compiled it ended")
            answer = {"number": worker.number, "seconds": round(seconds, 1), "error": error}
            print(json.dumps(answer), flush=True)
            if waiting:
                worker = worker if found else Worker(settings)
                workers[worker.connection] = worker
                worker.give(waiting.pop())
            elif found:
                worker.connection.send(None)
                worker.process.join()


if __name__ == "__main__":
    main()
