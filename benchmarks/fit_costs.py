"""Fits the factors of tasks/teaching/costs.py to measured variants.

    fit_costs.py TASKS VARIANTS RESULTS SEED

TASKS, VARIANTS: folders that `hone bench` judged, written by the teacher with SEED. RESULTS: its
results.jsonl. Fits to three quarters of the tasks and reports on the others: the rank correlation
of estimates and measured times within a task, and how much slower the variant of the lowest
estimate is than the fastest.
"""

import json
import pathlib
import statistics
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tasks" / room) for room in ("teaching", "synthesising", "importing")]

import torch  # noqa: E402
from contrast import statement_us  # noqa: E402
from costs import FACTORS, launch_us, program_us  # noqa: E402
from lesson import Lesson  # noqa: E402
from moves import BEST_GUESSES  # noqa: E402

MAX_NUMBERS = 60


def description(task):
    tensors = [
        {
            "name": t["name"],
            "shape": t["shape"],
            "dtype": t.get("dtype", "float32"),
            "is_parameter": t in task.get("parameter", []),
        }
        for t in task.get("input", []) + task.get("parameter", [])
    ]
    return {
        "name": task["name"],
        "reference": task["reference"],
        "relaxed": task.get("precision") == "relaxed",
        "tensors": tensors,
        "cases": [{"sizes": c["sizes"], "timed": c.get("timed", False)} for c in task["case"]],
    }


def measured(results):
    """Returns the microseconds of each ok document, by task and name. The last result counts."""
    found = {}
    for line in pathlib.Path(results).read_text().splitlines():
        one = json.loads(line)
        if one["outcome"] == "ok":
            found[one["task"], one["document"]] = one["candidate_us"]
    return found


def examples(tasks, variants, results, seed):
    """Returns for each task a list of (variant, calls_us, measured us)."""
    times = measured(results)
    found = {}
    for file in sorted(pathlib.Path(tasks).glob("*.toml")):
        lesson = Lesson(description(tomllib.loads(file.read_text())), "cuda")
        texts = {p.read_text(): p.stem for p in pathlib.Path(variants, file.stem).glob("*.md")}
        calls_us = statement_us(lesson.reference, lesson.timed)
        for number in (0, *range(BEST_GUESSES, MAX_NUMBERS)):
            v = lesson.variant(number, seed)
            us = times.get((file.stem, texts.pop(v.text, None)))
            if us is not None and v.program is not None and v.program.launches:
                found.setdefault(file.stem, []).append((v, calls_us, us))
    return found


def estimate(example, factors):
    v, calls_us, _ = example
    return program_us(v.program, calls_us, v.settings, factors)


def columns(launches):
    """Returns one Launch whose numbers are tensors over all the launches."""
    numbers = {n: torch.tensor([float(getattr(x, n)) for x in launches])
               for n in ("threads", "read", "written", "passes", "functions")}  # fmt: skip
    return launches[0]._replace(**numbers)


def fit(training, steps=1500):
    """Returns the factors that estimate the logarithms of the times best."""
    examples = [e for task in training for e in task]
    by_team = {}
    for k, (v, _, _) in enumerate(examples):
        for launch in v.program.launches:
            by_team.setdefault(launch.team, []).append((k, launch))
    teams = [(torch.tensor([k for k, _ in of]), columns([x for _, x in of]))
             for of in by_team.values()]  # fmt: skip
    counts = torch.tensor([float(len(v.program.launches)) for v, _, _ in examples])
    in_graph = torch.tensor(["cuda_graph" in v.settings for v, _, _ in examples])
    is_fast = torch.tensor(["fast_math" in v.settings for v, _, _ in examples])
    calls = torch.tensor([sum(us[n] for n in v.program.made_calls) for v, us, _ in examples])
    real = torch.log(torch.tensor([us for _, _, us in examples]))
    values = {n: torch.tensor(x, requires_grad=True) for n, x in FACTORS.items()}
    optimizer = torch.optim.Adam(values.values(), lr=0.02)
    for _ in range(steps):
        exp = {n: torch.exp(x) for n, x in values.items()}
        least = torch.where(in_graph, exp["in_graph"], exp["launch"])
        rate = torch.where(is_fast, exp["fast_functions"], exp["functions"])
        guessed = calls + counts * least
        for places, launches in teams:
            us = launch_us(launches, rate[places], values, torch.exp)
            guessed = guessed.index_add(0, places, us)
        loss = torch.nn.functional.smooth_l1_loss(torch.log(guessed), real, beta=0.2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    error = (torch.log(guessed) - real).abs().median().item()
    print(f"median error of the logarithm: {error:.3f}")
    return {n: round(x.item(), 2) for n, x in values.items()}


def ranks(values):
    order = sorted(range(len(values)), key=values.__getitem__)
    found = [0] * len(values)
    for rank, place in enumerate(order):
        found[place] = rank
    return found


def report(name, tasks, factors):
    correlations, regrets, pairs = [], [], []
    for task in tasks:
        if len(task) < 4:
            continue
        guessed, real = [estimate(e, factors) for e in task], [e[2] for e in task]
        n = len(task)
        squares = sum((a - b) ** 2 for a, b in zip(ranks(guessed), ranks(real)))
        correlations.append(1 - 6 * squares / (n * (n * n - 1)))
        regrets.append(real[guessed.index(min(guessed))] / min(real))
        for a in range(n):
            for b in range(n):
                if real[a] > 1.1 * real[b]:
                    pairs.append(guessed[a] > guessed[b])
    print(
        f"{name}: {len(correlations)} tasks, rank correlation median "
        f"{statistics.median(correlations):.3f}, mean {statistics.mean(correlations):.3f}; "
        f"the lowest estimate is slower by {statistics.geometric_mean(regrets):.3f} in the mean; "
        f"order of pairs that differ by 10 %: {sum(pairs) / len(pairs):.3f} right of {len(pairs)}"
    )


def main(tasks, variants, results, seed):
    found = list(examples(tasks, variants, results, int(seed)).values())
    held_out, training = found[::4], [t for k, t in enumerate(found) if k % 4]
    report("held out, before", held_out, FACTORS)
    factors = fit(training)
    report("fitted to", training, factors)
    report("held out", held_out, factors)
    for name, value in factors.items():
        print(f'    "{name}": {value},')


if __name__ == "__main__":
    main(*sys.argv[1:])
