"""Draws tasks from a grammar of operators, for policies to learn from.

Standard input is one JSON object:
    count, seed: how many tasks, and of which random stream.
    workers: the number of processes that draw and check.
    min_us, max_us: the range of a call's microseconds.
    device: "cpu" or "cuda:0" to time every task there; "" to go by an estimate for a GPU.
    dtype: the type of floating-point tensors. is_relaxed: whether tasks admit TF32.
    looks_imported: whether references are written as imported modules are.
    given: a list of objects with name and reference: the tasks to keep away from.
    bound: the similarity to a given task from which on a task is left out.

Standard output is one JSON object per program, in the order of their numbers. Of a task: name,
text, operators, us, and the nearest given task with its similarity. Of a program that is no task:
unfit, which says why, and where it is too close to a given task, the two fields of that as well.
"""

import json
import multiprocessing
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "importing")]

import torch  # noqa: E402
from checking import Checker  # noqa: E402
from drawing_programs import draw_program  # noqa: E402
from drawn_task import DTYPES, DrawnTask, name_of, random_of, rounded  # noqa: E402
from imported_names import rename_as_imported  # noqa: E402
from program import Unfit  # noqa: E402
from structure import Structure, similarity  # noqa: E402

TIMED_CALLS = 7

work = {}  # what the processes that check share: the request, and the structures of given tasks


def nearest_given(structure):
    """Returns the nearest given task's name and its similarity; equal graphs count as 1."""
    best = ("", 0.0)
    for name, given in work["structures"]:
        close = 1.0 if given.canonical == structure.canonical else similarity(structure, given)
        if close > best[1]:
            best = (name, close)
    return best


def make(number):
    """Draws and checks the program of a number. Returns what standard output says of it."""
    random = random_of(work["seed"], number)
    program = draw_program(random)
    if program is None:
        return {"unfit": "nothing was drawn"}
    if work["looks_imported"]:
        rename_as_imported(program, random)
    name = name_of(work["seed"], number)
    task = DrawnTask(name, program, DTYPES[work["dtype"]], work["is_relaxed"])
    try:
        checker = Checker(task)
        structure = Structure(checker.reference)
        near, close = nearest_given(structure)
        if close >= work["bound"]:
            return {"unfit": "too close to a given task", "nearest": near, "similarity": close}
        us = 1e6 * checker.fit_sizes(work["min_us"] * 1e-6, work["max_us"] * 1e-6)
        checker.check_small_cases()
    except Unfit as e:
        return {"unfit": str(e)}
    return {
        "name": name,
        "task": task,
        "canonical": structure.canonical,
        "operators": structure.operators,
        "us": us,
        "nearest": near,
        "similarity": close,
    }


def microseconds(checker, device):
    """Returns the median time of a call on a device."""
    arguments = checker.draw(checker.program.timed, torch.Generator().manual_seed(3), device=device)
    is_cuda = device.startswith("cuda")
    times = []
    for _ in range(TIMED_CALLS + 2):
        if is_cuda:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            torch.cuda._sleep(200_000)  # the host gets ahead of the device
            begin.record()
            checker.forward(*arguments)
            end.record()
            end.synchronize()
            times.append(begin.elapsed_time(end) * 1e3)
        else:
            before = time.perf_counter()
            checker.forward(*arguments)
            times.append((time.perf_counter() - before) * 1e6)
    return statistics.median(times[2:])


def fit_to_device(made):
    """Changes the first size until the device takes a time in the range. Raises Unfit."""
    checker = Checker(made["task"])
    sizes = checker.program.timed
    first = next(iter(sizes))
    for _ in range(4):
        us = made["us"] = microseconds(checker, work["device"])
        if work["min_us"] <= us <= work["max_us"]:
            return
        middle = (work["min_us"] * work["max_us"]) ** 0.5
        sizes[first] = rounded(sizes[first] * min(max(middle / us, 1 / 64), 16.0))
    raise Unfit("no size makes it take a time in the range")


def prepare(request):
    """Sets what processes share."""
    torch.set_num_threads(1)
    work.update(request)
    work["structures"] = []
    for given in request["given"]:
        try:
            work["structures"].append((given["name"], Structure(given["reference"])))
        except RuntimeError as e:
            raise SystemExit(f"the structure of {given['name']} cannot be read: {e}") from e


def drawn(request):
    """Yields what the numbers from 0 on give, in their order."""
    if request["workers"] < 2:
        number = 0
        while True:
            yield make(number)
            number += 1
    with multiprocessing.get_context("fork").Pool(request["workers"]) as pool:
        first = 0
        while True:
            yield from pool.imap(make, range(first, first + 256), chunksize=4)
            first += 256


def main():
    request = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare(request)
    seen, made = set(), 0
    for one in drawn(request):
        if "unfit" not in one and one["canonical"] in seen:
            one = {"unfit": "drawn before"}
        if "unfit" not in one:
            try:
                if request["device"]:
                    fit_to_device(one)
                seen.add(one["canonical"])
                made += 1
                one = {
                    "text": one["task"].text(),
                    **{k: one[k] for k in ("name", "operators", "us", "nearest", "similarity")},
                }
            except Unfit as e:
                one = {"unfit": str(e)}
        answers.write(json.dumps(one) + "\n")
        answers.flush()
        if made == request["count"]:
            return


if __name__ == "__main__":
    main()
