#!/usr/bin/env python3
"""Times modules in plain PyTorch on cuda:0, and compares them with the results of `hone bench`.

    benchmarks/plain_pytorch.py --hone RESULTS.jsonl [--hone RESULTS.jsonl]... MODULE.py...

A module's file is one of KernelBench, with Model, get_inputs() and get_init_inputs(), or one that
`hone export --as torch` wrote, with ModelNew as well. Its name is TASK.py or TASK__DOCUMENT.py.

A call is timed by CUDA events, behind writes of 256 MiB that empty the L2 cache and keep the GPU
busy while the host launches the call, for 0.4 ms at most, which is the most that Hone gives it.
TF32 is off and no gradients are kept. Times are in microseconds; the two
programs of a file take turns. A program is launch-bound if the GPU has begun its call before the
host has launched all of it. Part of its time is the processor's, so it is not compared.

The pause between two kernels differs between processes, by up to 0.3 us each, and stays the same
while a process lives, Hone's as well. So all files are timed in several processes, one after
another, and `hone bench` may be run several times. A program's time is the median of its times in
these, which are medians themselves.
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import multiprocessing
import pathlib
import statistics
import sys
import time
import traceback

import torch

FLUSH_BYTES = 256 << 20
HEAD_START_US = 400.0  # how long the flushes before a call last together, at most
ROUNDS = 31
MAX_S = 3.0  # of the rounds of one file
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
    """A module's forward pass and its times."""

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
        self.flushes = max(1, int(HEAD_START_US / clock.flush_us))
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
    end = time.monotonic() + MAX_S
    for _ in range(ROUNDS):
        for program in programs.values():
            program.sample()
        if time.monotonic() > end:
            break
    return programs


def read_hone(paths):
    """Returns Hone's times in us by (file's stem, program).

    The stem is TASK for a reference alone, else TASK__DOCUMENT.
    """
    times = collections.defaultdict(list)
    for line in (json.loads(line) for path in paths for line in path.read_text().splitlines()):
        if line["outcome"] != "ok":
            continue
        stem = line["task"]
        if line["document"] not in ("reference", line["task"]):
            stem += "__" + line["document"]
        times[stem, "Model"].append(line["reference_us"])
        times[stem, "ModelNew"].append(line["candidate_us"])
    return {program: statistics.median(us) for program, us in times.items()}


def time_in_this_process(paths, own_stream):
    """Returns the times of all files' programs: (file's stem, name, us, launch-bound, host's us).

    A file that cannot be timed yields its error instead of a name, and no times. The last line is
    about the process itself.
    """
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    if own_stream:
        torch.cuda.set_stream(torch.cuda.Stream())
    clock = Clock()
    lines = []
    with torch.no_grad():
        for path in paths:
            try:
                for name, program in time_module(path, clock).items():
                    times = program.median_us(), program.is_launch_bound(), program.host_us
                    lines.append((path.stem, name, *times))
            except Exception:
                lines.append((path.stem, traceback.format_exc().splitlines()[-1][:80]))
            torch.cuda.empty_cache()
    device = torch.cuda.get_device_name()
    return lines, f"{device}, torch {torch.__version__}, flush {clock.flush_us:.0f} us"


def time_in_processes(processes, paths, own_stream):
    """Returns the times by file and name, the errors by file, and what the last process is."""
    times = collections.defaultdict(list)
    errors = {}
    for _ in range(processes):
        spawned = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, spawned) as process:
            lines, about = process.submit(time_in_this_process, paths, own_stream).result()
        for stem, name, *values in lines:
            if values:
                times[stem, name].append(values)
            else:
                errors[stem] = name
    return times, errors, about


def compare(plain_us, hone_us):
    """Returns the difference as text and whether it is small."""
    difference = hone_us - plain_us
    if plain_us < SHORT_US:
        return f"{difference:+.2f} us", abs(difference) <= CLOSE_US
    share = difference / plain_us
    return f"{100 * share:+.1f} %", abs(share) <= CLOSE_SHARE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hone", type=pathlib.Path, required=True, action="append")
    parser.add_argument("--processes", type=int, default=3, help="how many, in turn; default: 3")
    parser.add_argument(
        "--own-stream",
        action="store_true",
        help="use a separate stream, as Hone does, and not the default stream",
    )
    parser.add_argument("modules", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.processes < 1:
        parser.error("--processes: at least one")
    hone = read_hone(options.hone)
    paths = [path for path in options.modules if (path.stem, "Model") in hone]
    times, errors, about = time_in_processes(options.processes, paths, options.own_stream)
    compared = close = launch_bound = 0
    print(f"# {about}, {options.processes} processes, {len(options.hone)} runs of Hone")
    print(
        f"{'module':60} {'program':9} {'plain':>10} {'spread':>7} {'Hone':>10} {'difference':>10} "
        f"{'host':>9}"
    )
    for (stem, name), runs in times.items():
        is_launch_bound = 2 * sum(run[1] for run in runs) > len(runs)
        # A process whose host was busy for a while says nothing of a program that others launch.
        us, _, host_us = zip(*(run for run in runs if is_launch_bound or not run[1]))
        plain_us = statistics.median(us)
        hone_us = hone[stem, name]
        text, is_close = compare(plain_us, hone_us)
        if is_launch_bound:
            launch_bound += 1
            text += " launch-bound"
        else:
            compared += 1
            close += is_close
        print(
            f"{stem[:60]:60} {name:9} {plain_us:10.2f} {(max(us) / min(us) - 1) * 100:5.1f} % "
            f"{hone_us:10.2f} {text:>10} {statistics.median(host_us):9.0f}"
        )
    for stem, error in errors.items():
        print(f"{stem[:60]:60} {error}")
    print(
        f"# {close} of {compared} programs within {100 * CLOSE_SHARE:.0f} % "
        f"({CLOSE_US:.0f} us below {SHORT_US:.0f} us); {launch_bound} launch-bound"
    )


if __name__ == "__main__":
    main()
