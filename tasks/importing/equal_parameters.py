"""Finds tensors of a module that are equal because the file makes them so.

A task draws its parameters independently, so equal ones have to be one parameter of it.
"""

import re

import torch
from recorded_draws import is_passed_on, leaves_of

MIN_NUMBERS = 64  # from which whole numbers are not equal by chance


def one_for_equals(constants, calls, names):
    """Returns the tensors by placeholder, with one tensor for those that are equal.

    constants: the tensors by placeholder. calls: the recorded Calls that made them, or None.
    names: those of the tensors in the module. Copies of a layer in a list, such as the layers of
    nn.TransformerEncoder, count as different ones: training changes them.
    """
    same, found = dict(constants), {}
    for node, tensor in constants.items():
        if not leaves_of(calls[node], []) or not is_varied(tensor):
            continue
        key = (tensor.shape, tensor.dtype, tensor.is_meta)
        for other in found.setdefault(key, []):
            if are_equal(tensor, constants[other], calls[node], calls[other]) and not (
                are_of_one_list(names[node], names[other])
                and share_draws(calls[node], calls[other])
            ):
                same[node] = constants[other]
                break
        else:
            found[key].append(node)
    return same


def is_varied(tensor):
    """Returns whether a tensor has numbers that differ, so many that none are equal by chance."""
    if tensor.is_meta:
        return True
    values = tensor.detach()
    enough = 2 if tensor.is_floating_point() else MIN_NUMBERS
    return values.numel() >= enough and bool((values != values.flatten()[0]).any())


def are_equal(tensor, other, call, other_call):
    if tensor.is_meta:
        made = origin(call)
        return made is not None and made is origin(other_call)
    return torch.equal(tensor, other)


def origin(call):
    """Returns the Call of which a tensor is a copy."""
    while call is not None and is_passed_on(call):
        call = call.args[1 if call.name == "copy_" else 0]
    return call


def share_draws(call, other):
    draws = [{id(leaf) for leaf in leaves_of(c, []) if leaf is not None} for c in (call, other)]
    return bool(draws[0] & draws[1])


def are_of_one_list(name, other):
    """Returns whether two names differ in the numbers of list elements alone."""
    return re.sub(r"\b\d+\b", "#", name) == re.sub(r"\b\d+\b", "#", other)
