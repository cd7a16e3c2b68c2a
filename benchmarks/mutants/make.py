"""Writes wrong variants of tasks, which a judge must refuse: mutants.

Graph mutants change the reference, kernel mutants the cuda block of an honest document. Kinds and
tasks have as equal shares as they allow. OUT/TASK/KIND-NN.md are the documents, and
OUT/mutants.jsonl says in a line what each of them does: task, document, kind, operator, line,
description and source, which is `reference` or the honest document's name.

usage: make.py TASKS --out OUT [--documents FOLDER] [--per-task N] [--count N] [--seed S]
"""

import argparse
import hashlib
import json
import pathlib
import random
import sys
import time

import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tasks" / "importing")]

import branch_mutations  # noqa: E402
import kernel_mutations  # noqa: E402
import operator_mutations  # noqa: E402
import precision_mutations  # noqa: E402
import reduction_mutations  # noqa: E402
import value_mutations  # noqa: E402
from cuda_tokens import Source  # noqa: E402
from documents import document_of_program, find_documents  # noqa: E402
from operators import PROGRAM_ERRORS  # noqa: E402
from program import normalized  # noqa: E402
from subject import Subject  # noqa: E402
from task_files import find_tasks  # noqa: E402
from torchscript_text import runnable  # noqa: E402

GRAPH_FAMILIES = (
    operator_mutations, value_mutations, reduction_mutations, precision_mutations,
    branch_mutations,
)  # fmt: skip
MAX_BYTES = 8192  # of a document
MAX_FAILURES = 12  # in a row, after which a kind has no more mutants of a task


class TaskMutants:
    """The mutants of one task. Each call of take() makes another one."""

    def __init__(self, task, documents, seed):
        self.task = task
        self._random = random.Random(f"{seed} {task.name}")
        self._subject = Subject(task)
        self._seen = {normalized(self._subject.program.text()), normalized(task.reference)}
        self._documents = [d for d in documents if "cuda" in d.blocks]
        self._seen.update(self._tokens_of(d.text()) for d in documents)
        by_kind = {}
        for family in GRAPH_FAMILIES:
            for mutation in family.mutations(self._subject):
                by_kind.setdefault(mutation.kind, []).append((mutation, "reference"))
        for document in self._documents:
            for mutation in kernel_mutations.mutations(document):
                by_kind.setdefault(mutation.kind, []).append((mutation, document.name))
        self._left = {kind: self._in_turns(found) for kind, found in by_kind.items()}

    def _in_turns(self, found):
        """Returns mutations in a random order in which their operators take turns."""
        groups = {}
        for mutation, source in found:
            groups.setdefault(mutation.operator, []).append((mutation, source))
        groups = [self._random.sample(g, len(g)) for _, g in sorted(groups.items())]
        self._random.shuffle(groups)
        order = []
        while groups:
            order += [g.pop() for g in groups]
            groups = [g for g in groups if g]
        return order[::-1]

    def kinds(self):
        """Returns the kinds that may have more mutants."""
        return [kind for kind, left in self._left.items() if left]

    def take(self, kind):
        """Returns (mutation, source, document) of a kind, or None if it has no more."""
        failures = 0
        while self._left[kind] and failures < MAX_FAILURES:
            mutation, source = self._left[kind].pop()
            text = self._document(mutation)
            if text is not None:
                return mutation, source, text
            failures += 1
        self._left[kind] = []
        return None

    def _document(self, mutation):
        """Returns a mutant's document, or None if it is no program, or is one that is known."""
        made = mutation.make()
        if isinstance(made, str):
            text, key = made, self._tokens_of(made)
        else:
            program = made.text()
            text, key = document_of_program(program), normalized(program)
            if key not in self._seen and not self._runs(program):
                return None
        if key in self._seen or len(text.encode()) > MAX_BYTES:
            return None
        self._seen.add(key)
        return text

    def _runs(self, program):
        try:
            torch.jit.CompilationUnit(runnable(program))
        except RuntimeError:
            return False
        return self._subject.problem_of(program) is None

    @staticmethod
    def _tokens_of(text):
        return " ".join(token.text for token in Source(text).tokens)


def choose(all_mutants, per_task, count, chooser):
    """Yields (task mutants, mutation, source, document).

    Each task in turn gives a mutant of the kind that has had the fewest so far.
    """
    by_kind = {}
    given = dict.fromkeys((m.task.name for m in all_mutants), 0)
    waiting = list(all_mutants)
    total = 0
    while waiting and total < count:
        for mutants in list(waiting):
            taken = None
            while taken is None and mutants.kinds():
                kinds = mutants.kinds()
                kind = min(kinds, key=lambda k: (by_kind.get(k, 0), chooser.random()))
                taken = mutants.take(kind)
            if taken is not None:
                by_kind[kind] = by_kind.get(kind, 0) + 1
                given[mutants.task.name] += 1
                total += 1
                yield (mutants, *taken)
            if taken is None or given[mutants.task.name] >= per_task:
                waiting.remove(mutants)
            if total >= count:
                return


def write(out, all_mutants, arguments):
    """Writes the documents and their list. Returns the numbers by kind and by task."""
    numbers, by_kind, by_task = {}, {}, {}
    seed = int(hashlib.sha256(str(arguments.seed).encode()).hexdigest()[:8], 16)
    with open(out / "mutants.jsonl", "w") as lines:
        for mutants, mutation, source, text in choose(
            all_mutants, arguments.per_task, arguments.count, random.Random(seed)
        ):
            task = mutants.task.name
            number = numbers[task, mutation.kind] = numbers.get((task, mutation.kind), 0) + 1
            document = f"{mutation.kind}-{number:02d}"
            (out / task).mkdir(exist_ok=True)
            (out / task / f"{document}.md").write_text(text)
            facts = {
                "task": task, "document": document, "kind": mutation.kind,
                "operator": mutation.operator, "line": mutation.line,
                "description": one_line(mutation.description), "source": source,
            }  # fmt: skip
            lines.write(json.dumps(facts) + "\n")
            by_kind[mutation.kind] = by_kind.get(mutation.kind, 0) + 1
            by_task[task] = by_task.get(task, 0) + 1
    return by_kind, by_task


def one_line(text):
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:297] + "..."


def load(arguments):
    """Returns the TaskMutants of the tasks; names on standard error those that have none."""
    documents = find_documents(arguments.documents) if arguments.documents else {}
    loaded = []
    for name, task in find_tasks(arguments.tasks).items():
        if len(task.reference) > MAX_BYTES:
            print(f"{name}: its reference is longer than a mutant may be", file=sys.stderr)
            continue
        begin = time.perf_counter()
        try:
            loaded.append(TaskMutants(task, documents.get(name, []), arguments.seed))
        except (*PROGRAM_ERRORS, SyntaxError) as e:
            print(f"{name}: has no mutants ({type(e).__name__}: {e})", file=sys.stderr)
        if time.perf_counter() - begin > 20:
            print(f"{name}: took {time.perf_counter() - begin:.0f} s to read", file=sys.stderr)
    return loaded


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", type=pathlib.Path, help="folder of task files, or one of them")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--documents", type=pathlib.Path, help="honest documents: FOLDER/TASK/*.md")
    parser.add_argument("--per-task", type=int, default=32, help="mutants of a task at most")
    parser.add_argument("--count", type=int, default=10**9, help="mutants in all at most")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arguments.out.mkdir(parents=True, exist_ok=True)
    by_kind, by_task = write(arguments.out, load(arguments), arguments)
    for kind, number in sorted(by_kind.items()):
        print(f"{number:6} {kind}")
    print(f"{sum(by_kind.values()):6} mutants of {len(by_task)} tasks in {arguments.out}")


if __name__ == "__main__":
    main()
