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

import functools
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lesson import Lesson  # noqa: E402


@functools.lru_cache(maxsize=256)
def lesson_of(text):
    """Returns the Lesson of a task and a kind of device. text: both, as JSON."""
    return Lesson(*json.loads(text))


def answer(request):
    first, count = request["first"], request["count"]
    lesson = lesson_of(json.dumps([request["task"], request["device"]]))
    variants, unfit = lesson.variants(range(first, first + count), request["seed"], count)
    return {"documents": [v.text for v in variants], "unfit": unfit}


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)
