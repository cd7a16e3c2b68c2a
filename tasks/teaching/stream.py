"""Writes tasks with the teacher's documents without end, for supervised training.

The line of a number depends on the seed, the number and the options, but on no other number. So
workers share the work by numbers: worker K of W writes K, K + W, K + 2W, ... (--first K --step W).

Nothing is run or judged. The sizes of tasks are drawn within bounds of bytes, not fitted to a time,
and a task may have results that a judge would not accept.

Every line of standard output is one JSON object with a number. Of a task it has
    name, task: the task's name, and the text of its file, with its tier: 1 for few statements on
        matrices and vectors, 2 for everything else.
    structure: the canonical hash of the reference's graph (tasks/synthesising/structure.py).
    documents: distinct texts. The first is the teacher's best guess. None has many more kernels,
        which take more tokens and more time.
    contrast: in a share of the lines, instead of documents: `document`, and in `shown` the texts
        and estimated speed-ups of two slower variants that it names. Nothing has measured them.
Of any other number it has
    skipped: why there is no task.

The program ends when nobody reads its output any more, or after --count numbers.
"""

import argparse
import itertools
import json
import os
import pathlib
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
SIBLINGS = [os.path.join(os.path.dirname(HERE), room) for room in ("synthesising", "importing")]
sys.path[:0] = [HERE, *SIBLINGS]

import torch  # noqa: E402
from contrast import contrast  # noqa: E402
from drawing_programs import draw_program_of  # noqa: E402
from drawn_task import DTYPES, DrawnTask, name_of, random_of  # noqa: E402
from imported_names import rename_as_imported  # noqa: E402
from lesson import Lesson  # noqa: E402
from moves import BEST_GUESSES  # noqa: E402
from program import Unfit  # noqa: E402
from structure import Structure  # noqa: E402

IMPORTED_SHARE = 0.5  # of the tasks, which look like imported ones
VARIANTS_OF_CONTRAST = 5  # that a contrast is chosen from
MAX_TRIES = 3  # variants that are written for each document that is wanted
MAX_FURTHER_KERNELS = 1  # of a document, beyond those of the best guess


def arguments(words=None):
    parser = argparse.ArgumentParser(description="Writes tasks with the teacher's documents.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--first", type=int, default=0, help="the first number")
    parser.add_argument("--step", type=int, default=1, help="from each number to the next")
    parser.add_argument("--count", type=int, help="how many numbers; without it, no end")
    parser.add_argument("--variants", type=int, default=4, help="the most documents of a task")
    parser.add_argument("--contrast-share", type=float, default=0)
    parser.add_argument(
        "--exclude", help="a JSON list of references: their structures are left out"
    )
    parser.add_argument("--tier-1-share", type=float, default=0.8, help="of the first numbers")
    parser.add_argument(
        "--tier-1-last-share", type=float, help="from --mix-numbers on; as before without it"
    )
    parser.add_argument("--mix-numbers", type=int, default=1, help="the share changes over these")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--dtype", choices=list(DTYPES), default="float32")
    parser.add_argument("--precision", choices=("strict", "relaxed"), default="strict")
    return parser.parse_args(words)


class Stream:
    """options: what the command line says. excluded: a set of structures."""

    def __init__(self, options, excluded=frozenset()):
        self.options, self.excluded = options, excluded

    def line(self, number):
        """Returns the object that a number's line holds."""
        try:
            return {"number": number, **self._material(number)}
        except Unfit as e:
            return {"number": number, "skipped": str(e)}

    def _material(self, number):
        o = self.options
        random = random_of(o.seed, number)
        tier = 1 if random.random() < self._tier_1_share(number) else 2
        program = draw_program_of(tier, random)
        if program is None:
            raise Unfit("nothing was drawn")
        if random.random() < IMPORTED_SHARE:
            rename_as_imported(program, random)
        is_relaxed = o.precision == "relaxed"
        task = DrawnTask(name_of(o.seed, number), program, DTYPES[o.dtype], is_relaxed)
        task.draw_sizes(o.device)
        structure = Structure(program.reference()).canonical
        if structure in self.excluded:
            raise Unfit("its structure is excluded")
        lesson = Lesson(task.description(), o.device)
        material = {"name": task.name, "task": task.text(), "structure": structure}
        wants_contrast = random.random() < o.contrast_share
        most = max(o.variants, VARIANTS_OF_CONTRAST) if wants_contrast else o.variants
        variants = self._variants(lesson, most)
        found = (
            contrast(lesson, variants[:VARIANTS_OF_CONTRAST], random) if wants_contrast else None
        )
        if found is None:
            most = kernels_of(variants[0]) + MAX_FURTHER_KERNELS
            fitting = [v.text for v in variants if kernels_of(v) <= most]
            return {**material, "documents": fitting[: o.variants]}
        shown = [{"estimate": score, "document": text} for score, text in found.shown]
        pair = {"shown": shown, "document": found.document}
        return {**material, "documents": [], "contrast": pair}

    def _tier_1_share(self, number):
        o = self.options
        last = o.tier_1_share if o.tier_1_last_share is None else o.tier_1_last_share
        return o.tier_1_share + (last - o.tier_1_share) * min(1, number / o.mix_numbers)

    def _variants(self, lesson, most):
        """Returns the best guess and drawn variants, and not the reference with settings."""
        drawn = range(BEST_GUESSES, BEST_GUESSES + MAX_TRIES * most)
        variants, unfit = lesson.variants((0, *drawn), self.options.seed, most)
        if unfit:
            raise Unfit(f"the teacher cannot lower it: {unfit}")
        return variants


def kernels_of(variant):
    return 0 if variant.program is None else len(variant.program.launches)


def structures_in(file):
    """Returns the structures of the references that a file lists."""
    return frozenset(Structure(one).canonical for one in json.loads(pathlib.Path(file).read_text()))


def main():
    options = arguments()
    torch.set_num_threads(1)
    stream = Stream(options, structures_in(options.exclude) if options.exclude else frozenset())
    numbers = itertools.count(options.first, options.step)
    try:
        for number in itertools.islice(numbers, options.count):
            print(json.dumps(stream.line(number)), flush=True)
    except ConnectionError:  # a closed pipe or socket
        # Nobody reads any more. Python would flush once more at exit and complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
