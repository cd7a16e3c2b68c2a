"""The tensors and numbers of a module, by the names that an exported graph gives the tensors."""

import functools
import re
import types

import numpy
import torch

# Attributes that every module has.
MODULE_ATTRIBUTES = set(vars(torch.nn.Module()))
MAX_ITEMS = 4096  # of a list or dict that are looked at
NUMBERS = (bool, int, float, complex, numpy.generic, numpy.ndarray)


def named_tensors(model):
    """Returns a module's parameters and buffers by name."""
    return dict(model.named_parameters(remove_duplicate=False)) | dict(
        model.named_buffers(remove_duplicate=False)
    )


def name_in(named, tensor):
    """Returns the name of the tensor in `named` that shares this one's memory, or None."""
    for name, other in named.items():
        if other is tensor or (
            other.device.type != "meta"
            and other.numel() > 0
            and other.data_ptr() == tensor.data_ptr()
            and other.shape == tensor.shape
            and other.stride() == tensor.stride()
            and other.dtype == tensor.dtype
        ):
            return name
    return None


def made_in_forward(program):
    """Returns the placeholders of the tensors that forward() makes of numbers in its text."""
    lifts = (torch.ops.aten.lift_fresh_copy.default, torch.ops.aten.lift_fresh.default)
    return {
        node.name
        for node in program.graph.nodes
        if node.op == "placeholder" and node.users and all(u.target in lifts for u in node.users)
    }


def loose_tensors(model):
    """Returns the tensors that a module holds and has not registered, by name.

    The name of an attribute is that of a graph; "sizes.0" is the first element of a list.
    """
    return {path: v for path, v in held_values(model) if isinstance(v, torch.Tensor)}


def held_numbers(model):
    """Returns the numbers, and NumPy's arrays, that a module holds, by name."""
    return {path: v for path, v in held_values(model) if isinstance(v, NUMBERS)}


def differing_numbers(one, other):
    """Returns names and values of the numbers of one module that differ in another one."""
    ours, theirs = held_numbers(one), held_numbers(other)
    return [
        (name, value, theirs[name])
        for name, value in ours.items()
        if name in theirs and repr(value) != repr(theirs[name])
    ]


def line_of(text, name):
    """Returns " (line 12)" for the line that assigns an attribute first, or nothing."""
    attribute = [part for part in name.split(".") if not part.isdigit()][-1]
    for number, line in enumerate(text.splitlines(), 1):
        if re.search(rf"\b{re.escape(attribute)}[\"']?\s*(=(?!=)|,|:.*=)", line):
            return f" (line {number})"
    return ""


def held_values(model):
    """Yields the names and values of what modules hold in attributes: tensors that are not
    registered, and numbers. Lists, dicts, closures, modules that are not registered and objects of
    the file's classes are searched."""
    seen = {id(m) for m in model.modules()}
    for path, module in model.named_modules():
        yield from held_by(own_attributes(module), path, seen)


def own_attributes(module):
    """Returns the attributes of a module that torch.nn.Module does not define."""
    return {n: v for n, v in vars(module).items() if n not in MODULE_ATTRIBUTES}


def held_by(attributes, path, seen):
    """Yields what `held_values` does for a dict. seen: the ids of objects that were searched."""
    for name, value in list(attributes.items())[:MAX_ITEMS]:
        inner = f"{path}.{name}" if path else str(name)
        if isinstance(value, (torch.Tensor, *NUMBERS)):
            yield inner, value
            continue
        parts = parts_of(value)
        if parts and id(value) not in seen:
            seen.add(id(value))
            yield from held_by(parts, inner, seen)


def parts_of(value):
    """Returns what an object holds, as a dict."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, torch.nn.Module):
        return value._parameters | value._buffers | own_attributes(value) | value._modules
    if isinstance(value, functools.partial):
        return {"func": value.func, "args": value.args, **value.keywords}
    if isinstance(value, types.FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or ())
        return {name: cell.cell_contents for name, cell in cells if is_filled(cell)}
    if type(value).__module__ == "imported_module":
        return getattr(value, "__dict__", {})
    return {}


def is_filled(cell):
    try:
        return cell.cell_contents is not None
    except ValueError:  # the name has no value yet
        return False
