"""Finds sizes of a graph that its module does not really leave free.

Operators tolerate sizes that mean nothing: gather reads as many rows as it has indices, and an
index of three channels reads three of many. A program that relies on the file's sizes would fail at
such sizes, although it is right.
"""

import torch
from source_file import Failure
from task_dtypes import is_integer

TRIES = 3  # draws for which a part of an input has to matter once
MIN_EXTENT = 16  # of smaller dimensions, windows may leave a quarter unread


def sizes_not_free(specification, call, cases):
    """Returns the names of sizes that are equal to others, and else of those whose dimensions are
    read as a whole at the file's sizes only.

    call: a function that returns the outputs for inputs. cases: sizes at which the task is checked.
    """
    found = rows_of_whole_numbers(specification)
    for name in () if found else specification.timed:
        for sizes in cases:
            for place in places_of(specification, name):
                if sizes[name] < MIN_EXTENT or name in found:
                    continue
                if not matters(specification, call, sizes, place) and matters(
                    specification, call, specification.timed, place
                ):
                    found.add(name)
    return found


def rows_of_whole_numbers(specification):
    """Returns the names of the numbers of rows of whole numbers, such as labels or indices, that
    another input before or after has in the file, too: they are about its rows."""
    named = [s for s in specification.inputs if s["shape"] and isinstance(s["shape"][0], str)]
    rows, others = (
        {s["shape"][0] for s in named if is_integer(s["dtype"]) == whole} for whole in (True, False)
    )
    equal = {specification.timed[name] for name in others}
    return {name for name in rows - others if specification.timed[name] in equal}


def places_of(specification, name):
    """Returns the inputs and dimensions, as numbers, that have a size."""
    return [
        (i, dim)
        for i, spec in enumerate(specification.inputs)
        for dim, extent in enumerate(spec["shape"])
        if extent == name
    ]


def matters(specification, call, sizes, place):
    """Returns whether the last quarter of a dimension of an input has an effect on the outputs."""
    i, dim = place
    for _ in range(TRIES):
        try:
            inputs, others = (specification.draw_inputs(sizes) for _ in range(2))
            before = call(inputs)
            quarter = max(1, inputs[i].size(dim) // 4)
            last = (dim, inputs[i].size(dim) - quarter, quarter)
            inputs[i].narrow(*last).copy_(others[i].narrow(*last))
            after = call(inputs)
        except (Failure, RuntimeError):
            return True
        if any(
            a.shape != b.shape or not torch.equal(a.nan_to_num(), b.nan_to_num())
            for a, b in zip(before, after)
        ):
            return True
    return False


def tied(sizes, timed, not_free):
    """Returns `sizes`, names by symbol, without those that are not free.

    Such a size becomes another one that is equal in the file, or else the file's number.
    """
    same = {}
    for name in not_free:
        equal = [n for n, v in timed.items() if v == timed[name] and n not in not_free]
        same[name] = equal[0] if equal else timed[name]
    return {symbol: same.get(name, name) for symbol, name in sizes.items()}
