"""The space that a kernel's threads run over, and indices in it.

An index of one dimension is
    ZERO              of a dimension of size 1
    ("run", a, b)     the flattened index of dimensions a to b of the domain
    ("text", "...")   an expression of C
Runs keep contiguous dimensions together: an index that runs over all dimensions in order needs no
division, whatever views lie between.
"""

from dims import product

ZERO = ("zero",)


class Domain:
    """dims: without those of size 1. reduced: whether a reduction combines each."""

    def __init__(self, dims, reduced, cases):
        self.cases = cases
        pairs = [(d, r) for d, r in zip(dims, reduced) if not d.is_one]
        self.dims = [d for d, _ in pairs]
        self.reduced = [r for _, r in pairs]
        self.kept_places = [k for k, r in enumerate(self.reduced) if not r]
        self.reduced_places = [k for k, r in enumerate(self.reduced) if r]

    def extent(self, a, b):
        return product(self.dims[a : b + 1], self.cases)

    def rows(self):
        return product([self.dims[k] for k in self.kept_places], self.cases)

    def row_length(self):
        return product([self.dims[k] for k in self.reduced_places], self.cases)

    def inner(self):
        """The number of kept elements behind the last dimension that is reduced."""
        last = max(self.reduced_places, default=-1)
        return product([self.dims[k] for k in self.kept_places if k > last], self.cases)

    def pattern(self):
        """The sizes of neighbors that are kept or reduced together."""
        out = []
        for dim, is_reduced in zip(self.dims, self.reduced):
            if out and out[-1][0] == is_reduced:
                out[-1][1].append(dim)
            else:
                out.append((is_reduced, [dim]))
        return [(flag, product(dims, self.cases)) for flag, dims in out]

    def index_over(self, dims, keeps_only=False):
        """The domain's own index, as one over its dimensions with those of size 1 among them."""
        live = self.kept_places if keeps_only else list(range(len(self.dims)))
        at = iter(live)
        return [ZERO if d.is_one else ("run", place, place) for d in dims
                for place in [None if d.is_one else next(at)]]  # fmt: skip

    def places_in(self, index):
        """The places that an index runs over, in order, or None if it is not made of runs."""
        places = []
        for part in index:
            if part == ZERO:
                continue
            if part[0] != "run":
                return None
            places += range(part[1], part[2] + 1)
        return places


def refined(dims, reduced, others, cases):
    """Splits dimensions where others split them. Returns them, and which are reduced."""
    out, flags = [], []
    for mine, theirs in paired(dims, others, cases, flags_of=reduced):
        if len(mine) == 1 and len(theirs) > 1:
            out += theirs
            flags += [mine[0][1]] * len(theirs)
        else:
            out += [d for d, _ in mine]
            flags += [f for _, f in mine]
    return out, flags


def paired(dims, others, cases, flags_of=None):
    """Pairs the smallest groups of neighbors that have equal products."""
    flags = flags_of if flags_of is not None else [False] * len(dims)
    left = [(d, f) for d, f in zip(dims, flags) if not d.is_one]
    right = [d for d in others if not d.is_one]
    pairs = []
    i = j = 0
    while i < len(left) or j < len(right):
        mine, theirs = left[i : i + 1], right[j : j + 1]
        i, j = i + 1, j + 1
        while True:
            a = product([d for d, _ in mine], cases).values
            b = product(theirs, cases).values
            if a == b and mine and theirs:
                break
            if sum(a) <= sum(b) and i < len(left):
                mine.append(left[i])
                i += 1
            elif j < len(right):
                theirs.append(right[j])
                j += 1
            elif i < len(left):
                mine.append(left[i])
                i += 1
            else:
                return [(left, right)]
        pairs.append((mine, theirs))
    return pairs
