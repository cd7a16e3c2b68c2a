#!/usr/bin/env python3
"""Checks which tests were skipped: tests/skipped.py FOLDER

FOLDER has the results of GoogleTest (GTEST_OUTPUT=xml:FOLDER/). Prints how many tests were
skipped for each reason. The exit code is 1 if a reason is not listed below: what a test needs is to
be installed by scripts/setup --tests.
"""

import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

# What a machine may lack, as tests say it.
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
            "(?i)not permitted|permission denied",
            "mounts need root",
        )
    )
)


def skipped_in(folder):
    """Returns names of skipped tests by reason."""
    found = collections.defaultdict(set)
    for file in pathlib.Path(folder).glob("*.xml"):
        for test in xml.etree.ElementTree.parse(file).iter("testcase"):
            skipped = test.find("skipped")
            if skipped is not None:
                reason = skipped.get("message", "").strip().splitlines()[-1]
                found[reason].add(f"{test.get('classname')}.{test.get('name')}")
    return found


def main():
    found = skipped_in(sys.argv[1])
    bad = {reason for reason in found if not ADMITTED.search(reason)}
    for reason, tests in sorted(found.items()):
        print(f"{len(tests)} skipped: {reason}")
        if reason in bad:
            print("  which is not admitted (tests/skipped.py): " + ", ".join(sorted(tests)[:5]))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
