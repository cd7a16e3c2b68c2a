"""Finds what holds between the elements of a tensor in every draw of a file.

Draws of independent numbers would not keep it.
"""

import torch

SAME_VALUES = "its values are the same in every draw"
# Most elements of a dimension along which an order is looked for, and most of a tensor.
MAX_ELEMENTS = 1 << 22
# Fewer elements in order, or fewer pairs of mirrored elements, may be so by chance.
MIN_ELEMENTS = 8
# Places of a last dimension that are compared with each other, and rows that show their order.
MAX_PLACES = 16
MIN_ROWS = 64
# Numbers of a place from which their mean and spread are known well enough.
MIN_OF_PLACE = 256
# Equal pairs that independent numbers would have at least where none are seen.
MIN_EQUAL = 12


def structure_of(samples):
    """Returns what holds in all samples, in words, or None if nothing is known to hold.

    samples: the same tensor as the file makes it with different seeds, on the CPU.
    """
    first = samples[0]
    if first.numel() < 2 or first.numel() > MAX_ELEMENTS:
        return None
    if any(s.shape != first.shape for s in samples):
        return "its shape is drawn"
    stacked = torch.stack([s.detach() for s in samples])
    values = stacked.double() if stacked.dtype != torch.bool else stacked.to(torch.int8)
    same = (values == values[:1]).all(0)
    if bool(same.all()):
        return SAME_VALUES
    return (
        order_in(values)
        or order_between_in(values)
        or symmetry_in(values)
        or places_in(values, same)
        or totals_in(values)
        or distinct_in(stacked)
        or places_that_differ_in(values)
        or gap_in(stacked)
        or spike_in(stacked)
    )


def rows_of(values, dim):
    """Returns the numbers of each place of a dimension, as columns."""
    return values.movedim(dim, -1).reshape(-1, values.size(dim))


def spike_in(samples):
    """Looks for a value that a continuous distribution would not repeat, such as a masked zero."""
    if not samples.dtype.is_floating_point:
        return None
    values, counts = samples.flatten()[: 1 << 20].unique(return_counts=True)
    most = int(counts.max())
    if most < MIN_ELEMENTS or len(values) < 3 or most <= 16 * int(counts.sort().values[-2]):
        return None
    share = 100 * most / int(counts.sum())
    return f"{share:.2g} % of its elements are exactly {float(values[counts.argmax()]) + 0.0:.3g}"


def order_in(values):
    """Looks for dimensions along which values never fall or never rise. values[0]: a sample."""
    for dim in range(1, values.dim()):
        steps = values.diff(dim=dim)
        if steps.numel() < MIN_ELEMENTS or not bool((steps != 0).any()):
            continue
        for name, holds in (("never fall", steps >= 0), ("never rise", steps <= 0)):
            if bool(holds.all()):
                return f"its values {name} along dimension {dim - 1}"
    return None


def order_between_in(values):
    """Looks for two places of a short last dimension of which one is never the larger, as of the
    corners of a box."""
    count = values.size(-1)
    if values.dim() < 3 or not 2 <= count <= MAX_PLACES or values.dtype == torch.int8:
        return None
    rows = values.reshape(-1, count)
    if rows.size(0) < MIN_ROWS:
        return None
    for i in range(count):
        for j in range(i + 1, count):
            steps = rows[:, j] - rows[:, i]
            if bool((steps != 0).any()) and (bool((steps >= 0).all()) or bool((steps <= 0).all())):
                larger, smaller = (j, i) if bool((steps >= 0).all()) else (i, j)
                return f"place {larger} of its last dimension is never below place {smaller}"
    return None


def places_that_differ_in(values):
    """Looks for a place of a short dimension whose numbers are spread differently from the others',
    as of edges between two kinds of nodes."""
    if values.dtype == torch.int8:
        return None
    for dim in range(1, values.dim()):
        count = values.size(dim)
        rows = rows_of(values, dim)
        if not 2 <= count <= MAX_PLACES or rows.size(0) < MIN_OF_PLACE:
            continue
        spread, mean = rows.std(0), rows.mean(0)
        widest = spread.max()
        differs = (spread < 0.7 * widest) | ((mean - mean[spread.argmax()]).abs() > 0.5 * widest)
        if bool(widest > 0) and bool(differs.any()):
            place = int(differs.nonzero()[0])
            return f"place {place} of its dimension {dim - 1} has another range than others"
    return None


def symmetry_in(values):
    """Looks for symmetric matrices in the last two dimensions."""
    if values.dim() < 3 or values.size(-1) != values.size(-2) or values.size(-1) < 2:
        return None
    pairs = values[..., 0].numel() * (values.size(-1) - 1) // 2
    if pairs < MIN_ELEMENTS:
        return None
    mirrored = values.transpose(-1, -2)
    if torch.allclose(values, mirrored, rtol=1e-5, atol=1e-6 * float(values.abs().max())):
        return "it consists of symmetric matrices"
    return None


def places_in(values, same):
    """Looks for places that have one value in every draw, while others vary."""
    places = same.numel()
    if values.dtype == torch.int8:
        ones = values.float().mean().item()
        most = 8 * (ones ** len(values) + (1 - ones) ** len(values)) * places + 4
    else:
        distinct = len(values.flatten()[: 1 << 16].unique())
        by_chance = distinct ** -(len(values) - 1.0)  # that a place has the same value always
        most = (8 + 4 / places**0.5) * by_chance * places
    if same.sum() > most:
        return "some of its elements have the same value in every draw"
    return None


def totals_in(values):
    """Looks for a dimension along which values have the same sum or norm."""
    if values.dtype == torch.int8:
        return None
    sizes, centered = values.abs(), values - values.mean()
    typical = float(min(sizes.mean(), centered.abs().mean()))
    are_signs = bool((sizes == sizes.flatten()[0]).all())
    may_be_logarithms = float(values.max()) <= 0
    for dim in range(1, values.dim()):
        if values.size(dim) < 2 or values.numel() // values.size(dim) < MIN_ELEMENTS:
            continue
        scale = typical * values.size(dim)
        kinds = [("sum", values.sum(dim))]
        if not are_signs:
            kinds.append(("norm", values.square().sum(dim).sqrt()))
        for name, totals in kinds:
            spread = float(totals.max() - totals.min())
            if scale > 0 and spread < 1e-4 * scale / values.size(dim) ** 0.5:
                return f"its values have the same {name} along dimension {dim - 1}"
        exponentials = values.exp().sum(dim) if may_be_logarithms else None
        if may_be_logarithms and float(exponentials.std()) < 1e-4 * exponentials.mean():
            return f"the exponentials of its values have the same sum along dimension {dim - 1}"
    return None


def distinct_in(samples):
    """Looks for a dimension along which whole numbers are all distinct, as of a permutation."""
    if samples.dtype.is_floating_point or samples.dtype == torch.bool:
        return None
    known = len(samples.flatten()[: 1 << 20].unique())
    for dim in range(1, samples.dim()):
        count = samples.size(dim)
        expected = samples.numel() * (count - 1) / 2 / known  # equal pairs of independent numbers
        if count < 2 or expected < MIN_EQUAL:
            continue
        if bool((samples.sort(dim).values.diff(dim=dim) != 0).all()):
            return f"its values are all distinct along dimension {dim - 1}"
    return None


def gap_in(samples):
    """Looks for whole numbers most of which lie far from others, such as an index to be ignored."""
    if samples.dtype.is_floating_point or samples.dtype == torch.bool:
        return None
    known = samples.flatten().unique()
    if len(known) < 3:
        return None
    gaps = known.diff()
    widest = int(gaps.max())
    others = int(gaps.sum()) - widest
    if (
        widest > 8
        and widest > 4 * max(1, others // max(1, len(gaps) - 1))
        and (widest in (int(gaps[0]), int(gaps[-1])))
    ):
        return "a few of its whole numbers lie apart from all others"
    return None
