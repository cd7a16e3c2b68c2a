#!/usr/bin/env python3
"""Times modules in plain PyTorch on cuda:0, beside what `hone bench` measured for them.

    benchmarks/plain_pytorch.py --hone RESULTS.jsonl MODULE.py...

A module's file is one of KernelBench, with Model, get_inputs() and get_init_inputs(), or one that
`hone export --as torch` wrote, with ModelNew as well. Its name is TASK.py or TASK__DOCUMENT.py.

A call is timed by CUDA events, behind writes of 256 MiB that empty the L2 cache and keep the GPU
busy until the host has launched the call. TF32 is off and no gradients are kept. Times are medians
in microseconds; the two programs of a file take turns. A program is launch-bound if the GPU has
begun its call before the host has launched all of it, whatever the number of writes, because it
waits for the GPU. Part of its time is the processor's, so it is not compared.
"""

import argparse
import importlib.util
import json
import pathlib
import statistics
import sys
import time
import traceback

import torch

FLUSH_BYTES = 256 << 20
MOST_FLUSHES = 400
ROUNDS = 31
LONGEST_S = 3.0  # of the rounds of one file
SHORT_US = 20.0  # differences of times below this are stated in microseconds
CLOSE_SHARE = 0.03
CLOSE_US = 1.0


class Clock:
    """Times single calls behind flushes of the L2 cache."""

    def __init__(self):
        self.block = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
        for _ in range(2):
            self.flush_us = self.time(lambda: self.flush(50), 1)[0] / 50

    def flush(self, times):
        for _ in range(times):
            self.block.fill_(1)

    def time(self, call, flushes):
        """Returns the call's microseconds and whether the GPU began it after its launch."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        self.flush(flushes)
        begin.record()
        call()
        end.record()
        was_launched_ahead = not begin.query()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3, was_launched_ahead


class Program:
    """A module's forward pass, with the number of flushes that hide its launch."""

    def __init__(self, model, inputs, clock):
        self.call = lambda: model(*inputs)
        self.clock = clock
        for _ in range(3):
            self.call()
        torch.cuda.synchronize()
        host_us = []
        for _ in range(3):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            self.call()
            host_us.append((time.perf_counter() - begin) * 1e6)
        self.host_us = min(host_us)
        self.flushes = min(MOST_FLUSHES, 2 + int(1.5 * self.host_us / clock.flush_us))
        self.us = []
        self.launched_ahead = 0

    def sample(self):
        us, was_launched_ahead = self.clock.time(self.call, self.flushes)
        self.us.append(us)
        self.launched_ahead += was_launched_ahead

    def median_us(self):
        return statistics.median(self.us)

    def is_launch_bound(self):
        return 2 * self.launched_ahead < len(self.us)


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def build(kind, arguments):
    torch.manual_seed(1)
    return kind(*arguments).cuda().eval()


def time_module(path, clock):
    """Returns the programs of a file by name, after their rounds."""
    module = load(path)
    torch.manual_seed(2)
    inputs = [v.cuda() if isinstance(v, torch.Tensor) else v for v in module.get_inputs()]
    arguments = module.get_init_inputs()
    programs = {"Model": Program(build(module.Model, arguments), inputs, clock)}
    if hasattr(module, "ModelNew"):
        programs["ModelNew"] = Program(build(module.ModelNew, arguments), inputs, clock)
    end = time.monotonic() + LONGEST_S
    for _ in range(ROUNDS):
        for program in programs.values():
            program.sample()
        if time.monotonic() > end:
            break
    return programs


def read_hone(path):
    """Returns the judged documents by file name: TASK for references, else TASK__DOCUMENT."""
    judged = {}
    for line in map(json.loads, path.read_text().splitlines()):
        if line["outcome"] != "ok":
            continue
        name = line["task"]
        if line["document"] not in ("reference", line["task"]):
            name += "__" + line["document"]
        judged[name] = line
    return judged


def compare(plain_us, hone_us):
    """Returns the difference as text and whether it is small."""
    difference = hone_us - plain_us
    if plain_us < SHORT_US:
        return f"{difference:+.2f} us", abs(difference) <= CLOSE_US
    share = difference / plain_us
    return f"{100 * share:+.1f} %", abs(share) <= CLOSE_SHARE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hone", type=pathlib.Path, required=True)
    parser.add_argument(
        "--own-stream",
        action="store_true",
        help="use a stream of its own, as Hone does, and not the default one",
    )
    parser.add_argument("modules", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    judged = read_hone(options.hone)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if options.own_stream:
        torch.cuda.set_stream(torch.cuda.Stream())
    clock = Clock()
    compared = close = launch_bound = 0
    print(
        f"# {torch.cuda.get_device_name()}, torch {torch.__version__}, "
        f"flush {clock.flush_us:.0f} us"
    )
    print(f"{'module':60} {'program':9} {'plain':>10} {'Hone':>10} {'difference':>10} {'host':>9}")
    with torch.no_grad():
        for path in options.modules:
            hone = judged.get(path.stem)
            if hone is None:
                continue
            try:
                programs = time_module(path, clock)
            except Exception:
                print(f"{path.stem[:60]:60} {traceback.format_exc().splitlines()[-1][:80]}")
                continue
            for name, program in programs.items():
                plain_us = program.median_us()
                hone_us = hone["candidate_us" if name == "ModelNew" else "reference_us"]
                text, is_close = compare(plain_us, hone_us)
                if program.is_launch_bound():
                    launch_bound += 1
                    text += " launch-bound"
                else:
                    compared += 1
                    close += is_close
                print(
                    f"{path.stem[:60]:60} {name:9} {plain_us:10.2f} {hone_us:10.2f} "
                    f"{text:>10} {program.host_us:9.0f}",
                    flush=True,
                )
            del programs
            torch.cuda.empty_cache()
    print(
        f"# {close} of {compared} programs within {100 * CLOSE_SHARE:.0f} % "
        f"({CLOSE_US:.0f} us below {SHORT_US:.0f} us); {launch_bound} launch-bound"
    )


if __name__ == "__main__":
    main()
