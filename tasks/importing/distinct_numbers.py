"""Finds whole numbers of which none occurs twice by rule, as those of a permutation.

Few numbers are distinct by chance as well, so their values do not tell.
"""

import re

import torch
from call_recording import Call
from recorded_draws import leaves_of

# Signs of whole numbers that NumPy or random draw without replacement.
DRAWS_DISTINCT = re.compile(r"replace=False|\b(sample|shuffle|permutation|permuted)\(")
# Operators whose results are distinct places of a tensor.
DISTINCT = {"randperm", "multinomial", "argsort", "sort", "topk", "nonzero", "unique", "_unique2"}


def is_made_of_distinct(call):
    """Returns whether whole numbers are made of places or numbers that are all distinct."""
    if not isinstance(call, Call) or call.dtype.is_floating_point:
        return False
    if call.name in DISTINCT:
        with_replacement = call.name == "multinomial" and True in call.args[2:]
        return not with_replacement
    arguments = torch.utils._pytree.tree_leaves(
        (call.args, call.kwargs), is_leaf=lambda v: isinstance(v, Call)
    )
    return any(is_made_of_distinct(argument) for argument in arguments)


def are_distinct(call, samples, text):
    """Returns whether a file draws an input's whole numbers so that none occurs twice.

    call: the recorded Call that made the input, or None. samples: the input, made with several
    seeds. text: the file's source.
    """
    return is_made_of_distinct(call) or (
        None in leaves_of(call, [])
        and DRAWS_DISTINCT.search(text) is not None
        and bool(samples)
        and all(len(t.unique()) == t.numel() > 1 for t in samples)
    )
