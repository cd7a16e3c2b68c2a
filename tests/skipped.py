#!/usr/bin/env python3
"""Checks which tests were skipped: tests/skipped.py LOG

LOG is what CTest writes: Testing/Temporary/LastTest.log in the build folder. Prints where tests
were skipped, and why. The exit code is 1 if a reason is not listed below: what a test needs
is to be installed by scripts/setup --tests.
"""

import collections
import pathlib
import re
import sys

# Features that a machine may lack, as tests name them.
ADMITTED = re.compile(
    "|".join(
        (
            "no GPU to test on",
            "there is one GPU",
            "there is a GPU",
            r"needs \d+ GPUs",
            r"libcuda\.so",
            "this kernel has no Landlock",
            "there is no room for (a|two) lower priorit",
            "network namespaces (cannot be made here|need root)",
            "HONE_SMOLLM2 (names no folder|does not name)",
            "times mean nothing here",
            "not permitted|permission denied",
            "mounts need root",
        )
    ),
    re.IGNORECASE,
)


def skipped_in(log):
    """Returns the places of skipped tests by reason. GoogleTest prints "FILE:LINE: Skipped"."""
    found = collections.defaultdict(set)
    lines = pathlib.Path(log).read_text(errors="replace").splitlines()
    for place, reason in zip(lines, [*lines[1:], ""]):
        if place.endswith(": Skipped"):
            found[reason.strip()].add(place.removesuffix(": Skipped").rsplit("/", 1)[-1])
    return found


def main():
    found = skipped_in(sys.argv[1])
    bad = {reason for reason in found if not ADMITTED.search(reason)}
    for reason, tests in sorted(found.items()):
        print(f"skipped at {', '.join(sorted(tests)[:3])}: {reason}")
        if reason in bad:
            print("  which is not admitted (tests/skipped.py)")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
