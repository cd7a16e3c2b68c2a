"""Names the symbolic sizes of an exported graph."""

import torch

SIZE_NAMES = ["N", "M", "K", "L", "P", "Q", "R", "S", "T", "U", "V", "W"]


def fixed(extent):
    """Returns an extent as a number, or None if it is symbolic."""
    if isinstance(extent, int):
        return extent
    return int(extent.node.expr) if extent.node.expr.is_number else None


def named_sizes(program):
    """Returns a name for every symbol in the inputs' shapes.

    The result is empty if there are more symbols than names, or if an extent is neither a
    symbol nor a number.
    """
    names = {}
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or not isinstance(value, torch.Tensor):
            continue
        for extent in value.shape:
            if fixed(extent) is not None:
                continue
            if not extent.node.expr.is_Symbol:
                return {}
            if len(names) == len(SIZE_NAMES):
                return {}
            names.setdefault(extent.node.expr, SIZE_NAMES[len(names)])
    return names
