"""Says of the mutants that a judge has accepted whether they are wrong.

Each mutant with the outcome `ok` has one of the following verdicts:
    equivalent  It is the reference: its simplified graph is the same, or its results in float64
                are the same up to the last digits for inputs of all kinds, and in the task's types
                they are as exact. Of a kernel: its outputs have the same bits as those of the
                honest document; or known_equivalent.toml gives the reason.
    accurate    It differs from float64 by no more than the reference in its own types does.
    admitted    Its error is larger, but no larger than the judge admits for float32.
    inexact     In float64 it is the reference, but in the task's types it is less exact.
    unknown     It could not be run here.
    hole        Everything else: the judge should have refused it.

Prints a table by kind, and each hole with its largest error in units of the reference's own error
(errors.py), the inputs that show it, and why the judge misses it:
    tolerance   The judge draws such inputs, and its tolerance admits the error.
    inputs      The judge draws no such inputs for this task.
    shape       It is wrong in a case that is too large to be run here.
    race        It lacks a barrier or a guard, which shows only where threads run at once.

usage: survivors.py TASKS MUTANTS RESULTS.jsonl [--documents FOLDER] [--runner PROGRAM]
"""

import argparse
import collections
import json
import pathlib
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tasks" / "importing")]

from classification import Classifier  # noqa: E402
from documents import find_documents  # noqa: E402
from kernel_runs import KernelRunner  # noqa: E402
from task_files import find_tasks  # noqa: E402

VERDICTS = ("equivalent", "accurate", "admitted", "inexact", "unknown", "hole")


def read_results(path):
    """Returns the last outcome of each document by (task, document)."""
    outcomes = {}
    for line in path.read_text().splitlines():
        result = json.loads(line)
        outcomes[result["task"], result["document"]] = result["outcome"]
    return outcomes


def print_table(mutants, outcomes, verdicts):
    """Prints a line for each kind of mutant."""
    rows = collections.defaultdict(collections.Counter)
    for mutant in mutants:
        key = mutant["task"], mutant["document"]
        outcome = outcomes.get(key)
        for kind in (mutant["kind"], "all"):
            rows[kind]["judged"] += outcome is not None
            rows[kind][verdicts[key].verdict if key in verdicts else outcome] += 1
    caught = sorted({o for o in outcomes.values() if o != "ok"})
    columns = ["judged", *caught, *VERDICTS]
    print("| kind | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for kind in [*sorted(k for k in rows if k != "all"), "all"]:
        cells = [str(rows[kind][column] or "") for column in columns]
        print(f"| {kind} | " + " | ".join(cells) + " |")


def print_list(mutants, verdicts, wanted):
    listed = [m for m in mutants if verdicts_of(verdicts, m) == wanted]
    if not listed:
        return
    print(f"\n## {wanted}: {len(listed)}\n")
    for mutant in sorted(listed, key=lambda m: (m["kind"], m["task"])):
        verdict = verdicts[mutant["task"], mutant["document"]]
        print(f"- {mutant['task']}/{mutant['document']}: {mutant['description']}. {verdict.text()}")


def verdicts_of(verdicts, mutant):
    found = verdicts.get((mutant["task"], mutant["document"]))
    return found.verdict if found else None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", type=pathlib.Path, help="folder of task files")
    parser.add_argument("mutants", type=pathlib.Path, help="folder that make.py has written")
    parser.add_argument("results", type=pathlib.Path, help="results.jsonl of `hone bench`")
    parser.add_argument("--documents", type=pathlib.Path, help="honest documents of kernel mutants")
    parser.add_argument("--runner", type=pathlib.Path, help="the program document_outputs")
    parser.add_argument("--device", help="kind of device of the results: cpu or cuda")
    parser.add_argument("--json", type=pathlib.Path, help="write each survivor's verdict here")
    parser.add_argument(
        "--list",
        nargs="*",
        default=["hole"],
        choices=VERDICTS,
        help="verdicts whose mutants are listed",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tasks = find_tasks(arguments.tasks, arguments.device)
    lines = (arguments.mutants / "mutants.jsonl").read_text().splitlines()
    mutants = [json.loads(line) for line in lines]
    outcomes = read_results(arguments.results)
    documents = find_documents(arguments.documents) if arguments.documents else {}
    runner = KernelRunner(arguments.runner, documents) if arguments.runner else None
    classifier = Classifier(arguments.mutants, tasks, runner)
    verdicts = {}
    for mutant in sorted(mutants, key=lambda m: m["task"]):
        key = mutant["task"], mutant["document"]
        if outcomes.get(key) == "ok":
            verdicts[key] = classifier.classify(mutant)
    print_table(mutants, outcomes, verdicts)
    for wanted in arguments.list:
        print_list(mutants, verdicts, wanted)
    if arguments.json:
        with open(arguments.json, "w") as out:
            for mutant in mutants:
                verdict = verdicts.get((mutant["task"], mutant["document"]))
                if verdict:
                    out.write(json.dumps(mutant | verdict.facts()) + "\n")


if __name__ == "__main__":
    main()
