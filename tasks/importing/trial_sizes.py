"""Chooses the sizes at which a reference is compared with its module."""

from cost import PATIENCE


def reduced_sizes(timed, names, affordable):
    """Returns the timed sizes with the named ones halved, largest first, until a call is cheap.

    A call is cheap if a check can run eight. No size is reduced below 3: if a call is not cheap
    then, returns those sizes if a check with PATIENCE can run the call, else None.
    """
    sizes = dict(timed)
    while not affordable(sizes, 8):
        largest = max(names, key=sizes.get)
        if sizes[largest] <= 3:
            return sizes if affordable(sizes, PATIENCE) else None
        sizes[largest] = max(3, sizes[largest] // 2)
    return sizes


def odd_sizes(timed):
    """Yields sizes to try in addition to the file's.

    Small odd numbers come first, then neighbors of the file's sizes, then changes of one size.
    """
    names = list(timed)
    small, more = [63, 37, 29, 17, 13, 11, 7, 5, 3], [5, 67, 41, 31, 19, 23, 9, 7, 5]

    def near(numbers):
        return dict(zip(names, numbers + numbers))

    yield near(small)
    yield near(more)
    yield {n: timed[n] + 1 if timed[n] % 2 == 0 else timed[n] + 2 for n in names}
    yield {n: max(2, timed[n] // 2 | 1) for n in names}
    for name in names:
        yield timed | {name: 3 if timed[name] != 3 else 5}
        yield timed | {name: timed[name] + 1 if timed[name] % 2 == 0 else timed[name] + 2}
