"""Tests that the judge refuses a small set of wrong programs, of every kind, on the CPU device.

Mutants that are accepted must be right (benchmarks/mutants/survivors.py).

usage: mutants_are_refused.py HONE DOCUMENT_OUTPUTS
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MUTANTS = ROOT / "benchmarks" / "mutants"
TASKS, DOCUMENTS = ROOT / "configs" / "tasks", ROOT / "configs" / "corpus"

PER_TASK = 5
MIN_MUTANTS, MIN_KINDS = 60, 55
RIGHT = {"equivalent", "accurate", "admitted", "inexact"}


def run(*words):
    ended = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"{words[0]} failed:\n{ended.stdout}\n{ended.stderr}")


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def problems_of(folder, mutants):
    """Yields the problems of the results."""
    results = read_lines(folder / "results" / "results.jsonl")
    outcomes = collections.Counter(result["outcome"] for result in results)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    kinds = {mutant["kind"] for mutant in mutants}
    if len(mutants) < MIN_MUTANTS or len(kinds) < MIN_KINDS:
        yield f"there are only {len(mutants)} mutants of {len(kinds)} kinds"
    if len(results) != len(mutants):
        yield f"{len(results)} of {len(mutants)} mutants were judged"
    if outcomes["infrastructure"] > 0:
        yield f"{outcomes['infrastructure']} mutants were not judged: infrastructure"
    for one in read_lines(folder / "verdicts.jsonl"):
        if one["verdict"] not in RIGHT:
            yield (
                f"{one['task']}/{one['document']} was accepted: {one['description']}; "
                f"{one['verdict']}: {one['units']} units, {one['inputs']} {one['cause']}"
            )


def main():
    hone, runner = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        mutants = folder / "mutants"
        run(
            sys.executable, MUTANTS / "make.py", TASKS, "--documents", DOCUMENTS,
            "--out", mutants, "--per-task", PER_TASK,
        )  # fmt: skip
        run(
            hone, "bench", TASKS, "--variants", mutants, "--verify", "--out", folder / "results",
            "--devices", "cpu", "--share-cores",
        )  # fmt: skip
        run(
            sys.executable, MUTANTS / "survivors.py", TASKS, mutants,
            folder / "results" / "results.jsonl", "--documents", DOCUMENTS, "--runner", runner,
            "--json", folder / "verdicts.jsonl",
        )  # fmt: skip
        problems = list(problems_of(folder, read_lines(mutants / "mutants.jsonl")))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
