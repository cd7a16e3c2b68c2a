"""Writes variants of tasks by rules: the teacher.

Every line of standard input is one JSON object, which asks for variants of a task:
    task: name, reference, relaxed, tensors (a list of objects with name, shape, dtype and
        is_parameter, in the order of the arguments) and cases (a list of objects with sizes and
        timed), those of the device.
    device: "cuda" or "cpu".
    seed, first, count: of the variants with the numbers from first on.
Every line of standard output answers one: documents, a list of texts without repetitions, and
unfit, which says why there are no kernels if there are none.

Whatever the rules do not cover is computed by ATen, as in the reference.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from explaining import document  # noqa: E402
from host_program import HostProgram  # noqa: E402
from lowering import Lowered  # noqa: E402
from moves import BEST_GUESSES, Moves, is_worth_kernels  # noqa: E402
from reading import Reference  # noqa: E402

read = {}  # references by the texts of their tasks


def reference_of(task):
    key = json.dumps(task)
    if key not in read:
        cases = [case["sizes"] for case in task["cases"]]
        try:
            read[key] = Reference(task["reference"], task["tensors"], cases)
        except Exception as e:  # what cannot be read is taken as it is
            read[key] = e
    return read[key]


def variant(task, device, number, seed):
    """Returns the document of a variant, and why it has no kernels of its own."""
    moves = Moves(number, seed, task["name"], device)
    reference = reference_of(task)
    unfit = str(reference) if isinstance(reference, Exception) else ""
    program = None
    if number < BEST_GUESSES and not unfit and not is_worth_kernels(reference):
        moves.fuses = False
    if moves.fuses and not unfit:
        parameters = {t["name"] for t in task["tensors"] if t["is_parameter"]}
        timed = next((k for k, case in enumerate(task["cases"]) if case["timed"]), 0)
        try:
            lowered = Lowered(reference, device, parameters, moves.folds, moves.channels_last)
            program = HostProgram(lowered, moves.choices, timed)
        except Exception as e:  # whatever the rules trip over, the reference is right
            unfit = f"{type(e).__name__}: {e}"
    return document(task, device, reference, moves, program), unfit


def answer(request):
    documents, unfit = [], ""
    for number in range(request["first"], request["first"] + request["count"]):
        text, why = variant(request["task"], request["device"], number, request["seed"])
        unfit = unfit or why
        if text not in documents:
            documents.append(text)
    return {"documents": documents, "unfit": unfit}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
