"""Compares the inputs that a file makes with those that a task draws.

Each rule looks for a fact about the file's draws that does not hold for the task's. The rules need
many numbers to find one: what they find is no chance, and what they miss may be one.
"""

import itertools
from typing import NamedTuple

import torch
from drawn_structure import MAX_ELEMENTS, rows_of
from source_file import Failure

NOT_FOLLOWED = (
    "and how the file draws it cannot be followed; make it from one draw of its shape with "
    "operators that TorchScript has"
)
MAX_NUMBERS = 1 << 18  # of a tensor whose values are compared
MAX_PLACES, MAX_RELATED = 512, 256  # of a dimension, each and in pairs
MAX_ROWS = 2048  # in which pairs of places are looked for
MAX_OF_HALF = 1 << 14  # numbers of each draw's halves that are compared
MAX_UNORDERED = 8  # numbers of rows that are compared in any order
MIN_REPEATED = 0.01  # share of rows that repeat others
MIN_ROWS = 64
MIN_OF_ROW = 8  # numbers that show a row's mean and scale
MIN_EQUAL_PAIRS = 12  # among a task's draws, which the file's have none of
MAX_TAKEN = 1 << 12  # numbers of a tensor that are looked for in another one


def require_same_draws(inputs, samples, sizes, generator):
    """Raises Failure if something holds for a file's inputs that their Inits would lose.

    inputs: their specifications. samples: FileSamples.inputs.
    sizes: the task's, by name.
    """
    pairs = {}  # by name: the draws of the file, and of the task
    for place, spec in enumerate(inputs):
        made = samples.get(place, [])
        if not made or any(one.shape != made[0].shape for one in made):
            continue
        if made[0].numel() > MAX_ELEMENTS:
            made = made[:2]
        if are_equal(made):
            made = made[:1]  # the file seeds a generator
        if spec["init"].of == "constant" and len(made) > 1:
            raise Failure(
                f"{spec['name']}: all its elements are one number, which the file draws anew in "
                "each call and a task would not; draw it as an input of its shape"
            )
        drawn = both_draws(spec["init"], made, spec["dtype"], sizes, generator)
        if spec["has_mean"] and made[0].is_floating_point():
            # Scale and mean of the file's draws differ from call to call.
            drawn = [standardized(x) for x in drawn]
        pairs[spec["name"]] = drawn
    for name, (file, task) in pairs.items():
        found = lost_in(file, task)
        if found is not None:
            raise Failure(f"{name}: {found}, {NOT_FOLLOWED}")
    for (name, ours), (other, theirs) in itertools.combinations(pairs.items(), 2):
        found = relation_lost_between((ours[0], theirs[0]), (ours[1], theirs[1]))
        if found is not None:
            raise Failure(
                f"{name} {found} {other} in the file, and a task would draw them independently; "
                "compute one from the other in forward()"
            )


def standardized(draws):
    """Returns each draw with mean 0 and deviation 1."""
    dims = list(range(1, draws.dim()))
    centered = draws - draws.mean(dims, keepdim=True)
    return centered / centered.square().mean(dims, keepdim=True).sqrt().clamp_min(1e-30)


def lost_in_draws(init, tensor, samples, generator):
    """Returns what holds for a parameter as the file makes it, and not as an Init draws it, in
    words, or None. samples: the parameter, made with several seeds."""
    if not samples or any(one.shape != tensor.shape for one in samples):
        return None
    if are_equal(samples):
        samples = samples[:1]  # the file sets the seed
    return lost_in(*both_draws(init, samples, tensor.dtype, {}, generator))


def are_equal(samples):
    """Returns whether a tensor is the same with every seed."""
    return all(torch.equal(one, samples[0]) for one in samples)


def both_draws(init, made, dtype, sizes, generator):
    """Returns what a file has made, and as many draws of an Init, each stacked and cut alike."""
    shape, most = list(made[0].shape), MAX_ELEMENTS // len(made)
    drawn = [part_of(init.draw(shape, dtype, sizes, generator), most) for _ in made]
    return torch.stack([part_of(one, most).to(dtype) for one in made]), torch.stack(drawn)


def part_of(tensor, most):
    """Returns a tensor, or a part of one with more than `most` elements."""
    while tensor.numel() > most:
        dim = max(range(tensor.dim()), key=tensor.size)
        tensor = tensor.narrow(dim, 0, tensor.size(dim) // 2)
    return tensor


def lost_in(file, task):
    """Returns what holds for a file's draws and not for a task's, in words, or None.

    file, task: tensors of one shape; the first dimension counts the draws.
    """
    draws = max(1, min(len(file), MAX_ELEMENTS // max(1, file[0].numel())))
    file, task = file[:draws], task[:draws]
    if not MIN_ROWS <= file.numel() <= MAX_ELEMENTS or file.dim() < 2:
        return None
    file, task = file.double(), task.double()
    if not (file.isfinite().all() and task.isfinite().all()):
        return None
    independent = min(
        distinct_rows(rows_of(file, dim)) * file.size(dim) for dim in range(1, file.dim())
    )
    found = values_lost(file.flatten()[:MAX_NUMBERS], task.flatten()[:MAX_NUMBERS], independent)
    if found is not None:
        return found
    # A few very large numbers would decide what a mean or a correlation is.
    ordered = file.flatten()[:MAX_NUMBERS].sort().values
    limits = [float(ordered[int(share * (len(ordered) - 1))]) for share in (0.005, 0.995)]
    file, task = file.clamp(*limits), task.clamp(*limits)
    columns = [Columns.of(file, task, dim) for dim in range(1, file.dim())]
    return (
        places_lost(columns, float(file.std()))
        or diagonal_lost(file, task)
        or pairs_lost(file, task)
        or relations_lost(columns)
        or rows_lost(columns)
        or repeats_lost(file, task)
        or halves_lost(file, task)
    )


class Columns(NamedTuple):
    """The places of a dimension, as columns of what a file and a task draw. count: the distinct
    rows of the file."""

    dim: int
    file: torch.Tensor
    task: torch.Tensor
    count: int

    @classmethod
    def of(cls, file, task, dim):
        ours = rows_of(file, dim)
        return cls(dim - 1, ours, rows_of(task, dim), distinct_rows(ours))


def distinct_rows(rows):
    """Returns the number of distinct rows: copies, as of an expanded tensor, say nothing more."""
    generator = torch.Generator().manual_seed(1)
    weights = torch.rand(rows.size(1), generator=generator, dtype=torch.float64)
    return len((rows @ weights).unique())


def values_lost(file, task, independent):
    """independent: how many of the file's numbers are no copies of others."""
    low, high, count = float(file.min()), float(file.max()), len(file)
    known, drawn = len(file.unique()), len(task.unique())
    if known > 4 * drawn and drawn > 1:
        return "its values are finer than the type of a task's draws, float32, can hold"
    margin = 0.001 * (high - low)
    beyond = float(((task < low - margin) | (task > high + margin)).double().mean())
    if beyond > 0.002 + 20 / min(count, independent):
        return f"its values lie between {low:.6g} and {high:.6g}"
    if share_whole(file) > 0.999 and share_whole(task) < 0.5:
        return "its values are whole numbers"
    found, drawn = (len(x.abs().unique()) / count for x in (file, task))
    if independent == count and drawn > 0.95 and drawn - found > MIN_REPEATED + 8 / count:
        return "its numbers occur more than once, signs left out"
    if drawn > 3 * known + 8 and count >= 10 * known:
        return f"its values are {known} different numbers"
    both = torch.cat([file, task]).unique()
    shares = [torch.searchsorted(x.sort().values, both, right=True) / len(x) for x in (file, task)]
    if float((shares[0] - shares[1]).abs().max()) > 0.1 + 3 / min(count, independent) ** 0.5:
        return f"its distribution, of mean {float(file.mean()):.3g}, is no simple one"
    return None


def share_whole(values):
    return float((values == values.round()).double().mean())


def places_lost(columns, spread):
    """spread: the standard deviation of all numbers of the file."""
    for dim, ours, theirs, count in columns:
        if not 2 <= ours.size(1) <= MAX_PLACES or count < MIN_ROWS:
            continue
        apart = (ours.mean(0) - theirs.mean(0)).abs() > spread * (0.25 + 6 / count**0.5)
        if count >= 4 * MIN_ROWS:
            apart |= (ours.std(0) < 0.5 * theirs.std(0)) | (ours.std(0) > 2 * theirs.std(0))
        if bool(apart.any()):
            place = int(apart.nonzero()[0])
            return f"place {place} of its dimension {dim} has another range than others"
    return None


def diagonal_lost(file, task):
    if file.dim() < 3 or file.size(-1) != file.size(-2) or file.size(-1) < 4:
        return None
    ours, theirs = (x.diagonal(dim1=-2, dim2=-1).flatten() for x in (file, task))
    if abs(float(ours.mean() - theirs.mean())) > float(file.std()) * (0.25 + 6 / len(ours) ** 0.5):
        return "its diagonal has another range than other elements"
    return None


def are_distinct_pairs(ours, theirs):
    """Returns whether pairs of whole numbers never occur twice in a draw of a file, and do in a
    task's. ours, theirs: pairs of tensors [draws, n]."""
    counts = []
    for first, second in (ours, theirs):
        keys = (first * (float(second.max()) + 1) + second).flatten(1)
        counts.append(sum(keys.size(1) - len(row.unique()) for row in keys))
    return counts[0] == 0 and counts[1] >= MIN_EQUAL_PAIRS


def pairs_lost(file, task):
    whole = share_whole(file.flatten()[:MAX_NUMBERS]) == 1
    if whole and file.dim() > 2 and 2 in (file.size(1), file.size(-1)):
        dim = 1 if file.size(1) == 2 else file.dim() - 1
        if are_distinct_pairs(*(x.unbind(dim) for x in (file, task))):
            return f"the pairs along its dimension {dim - 1} are distinct"
    return None


def relations_lost(columns):
    for dim, ours, theirs, count in columns:
        if not 2 <= ours.size(1) <= MAX_RELATED or count < MIN_ROWS:
            continue
        ours, theirs = ours[:MAX_ROWS], theirs[:MAX_ROWS]
        places = related_columns(ours, theirs, min(count, distinct_rows(theirs), len(ours)))
        if places is not None:
            which = f"places {places[0]} and {places[1]} of its dimension {dim}"
            return f"{which} depend on each other"
    return None


def rows_lost(columns):
    """Looks for rows with a common offset or scale: their means or sizes differ more than those
    of a task's rows."""
    for dim, ours, theirs, count in columns:
        if ours.size(1) < MIN_OF_ROW or count < MIN_ROWS:
            continue
        for what, measure in (("an offset", torch.Tensor.clone), ("a scale", torch.abs)):
            found, drawn = (middle_half(measure(x - x.mean(0)).mean(1)) for x in (ours, theirs))
            if found > (2 + 16 / count**0.5) * drawn:
                return f"the numbers along its dimension {dim} share {what}"
    return None


def middle_half(values):
    """Returns the distance between the quartiles."""
    ordered = values.sort().values
    return float(ordered[3 * len(ordered) // 4] - ordered[len(ordered) // 4])


def repeats_lost(file, task):
    """Looks for rows that occur again in a draw, signs left out, more often than in a task's. Short
    rows are compared in any order of their numbers, as those of edges in both directions."""
    for dim in range(1, file.dim()):
        if not MIN_ROWS <= file.numel() // file.size(dim):
            continue
        rows = [x.abs().movedim(dim, -1).flatten(1, -2) for x in (file, task)]
        if rows[0].size(1) < 2:
            continue
        if 2 <= file.size(dim) <= MAX_UNORDERED:
            rows = [x.sort(-1).values for x in rows]
        found, drawn = (sum(distinct_rows(one) for one in x) for x in rows)
        count = rows[0].size(0) * rows[0].size(1)
        if drawn > 0.999 * count and found < (1 - MIN_REPEATED) * count - 1:
            return f"rows along its dimension {dim - 1} occur more than once"
        if found < 0.9 * drawn - 6 * count**0.5:
            return f"rows along its dimension {dim - 1} occur more often than by chance"
    return None


def halves_lost(file, task):
    """Looks for a dimension one half of which is made of the other."""
    for dim in range(1, file.dim()):
        half = file.size(dim) // 2
        if 2 * half != file.size(dim):
            continue
        ours, theirs = ([some_of(part) for part in x.split(half, dim)] for x in (file, task))
        found = relation_lost_by_place(ours, theirs) if ours[0].numel() >= MIN_ROWS else None
        if found is not None:
            return f"one half of its dimension {dim - 1} {found} the other"
    return None


def some_of(draws):
    """Returns some numbers of each draw, as rows."""
    rows = draws.flatten(1)
    return rows[:, :: 1 + rows.size(1) // MAX_OF_HALF]


def related_columns(file, task, count):
    """Returns the numbers of two columns whose ranks, or their squares, correlate otherwise, or
    None. count: how many of the rows are independent of others."""
    file, task = ranks(file), ranks(task)
    for power in (1, 2):
        ours, theirs = (correlations((x - x.mean(0)) ** power) for x in (file, task))
        apart = ((ours - theirs).abs() > 0.3 + 6 / count**0.5).triu(1)
        if bool(apart.any()):
            return apart.nonzero()[0].tolist()
    return None


def ranks(columns):
    """Returns the ranks of the numbers of each column, the same for equal numbers. A few very large
    numbers would decide a correlation of values."""
    columns = columns.T.contiguous()
    return torch.searchsorted(columns.sort(1).values, columns).T.double()


def correlations(columns):
    return torch.corrcoef(columns.T).nan_to_num(0.0)


def relation_lost_between(file, task):
    """Returns what holds between two tensors of a file and not between a task's, or None.

    file, task: pairs of tensors; the first dimension counts the draws.
    """
    if not all(MIN_ROWS <= x.numel() <= MAX_ELEMENTS for x in file):
        return None
    file, task = ([x.double() for x in pair] for pair in (file, task))
    if not all(bool(x.isfinite().all()) for x in (*file, *task)):
        return None
    if file[0].shape == file[1].shape:
        found = relation_lost_by_place(file, task)
        if found is not None:
            return found
    if share_taken(*file) > 0.5 and share_taken(*task) < 0.05:
        return "shares its values with"
    for ours, theirs in zip(rows_beside(*file), rows_beside(*task)):
        if are_related(ours, theirs):
            return "depends on"
    return None


def are_related(file, task):
    """The same of two columns. Rows of few values repeat without being copies."""
    file, task = (x[:: 1 + len(x) // MAX_NUMBERS] for x in (file, task))
    counts = [max(distinct_rows(x), min(len(x), 4 * MIN_ROWS)) for x in (file, task)]
    return related_columns(file, task, min(counts)) is not None


def relation_lost_by_place(file, task):
    """The same of tensors of one shape, whose elements are compared place by place."""
    ours, theirs = (torch.stack([x.flatten() for x in pair], 1) for pair in (file, task))
    if all(share_whole(x.flatten()[:MAX_NUMBERS]) == 1 for x in file):
        if are_distinct_pairs(file, task):
            return "forms distinct pairs with"
    if torch.equal(*ours.T) and not torch.equal(*theirs.T):
        return "equals"
    below = [float((x[:, 0] <= x[:, 1]).double().mean()) for x in (ours, theirs)]
    for name, side, other in (("above", *below), ("below", 1 - below[0], 1 - below[1])):
        if side == 1 and other < 0.99:
            return f"is never {name}"
    return "depends on" if are_related(ours, theirs) else None


def share_taken(first, second):
    """Returns how many of the smaller tensor's numbers are among the other's, signs left out, in
    the first draw. Views and other orders of a tensor have the same numbers."""
    small, large = sorted((first[0].flatten().abs(), second[0].flatten().abs()), key=len)
    return float(torch.isin(small[:MAX_TAKEN], large).double().mean())


def rows_beside(first, second):
    """Yields pairs of columns [n, 2]: a tensor's elements, and the mean and the largest element of
    the slices of the other that belong to them, if the shape of one begins or ends that of the
    other. Transposed matrices are compared as well."""
    small, large = sorted((first, second), key=torch.Tensor.dim)
    extra = large.dim() - small.dim()
    if extra == 0:
        if small.dim() == 3 and small.transpose(1, 2).shape == large.shape:
            yield torch.stack([small.transpose(1, 2).flatten(), large.flatten()], 1)
        return
    for dims in (
        list(range(small.dim(), large.dim())),
        list(range(1, 1 + extra)),
    ):
        kept = [n for dim, n in enumerate(large.shape) if dim not in dims]
        if kept == list(small.shape):
            for value in (large.mean(dims), large.amax(dims)):
                yield torch.stack([small.flatten(), value.flatten()], 1)
