"""Calls an importer's module as if each call were the first one."""

import torch
from any_device import AnyDevice
from module_tensors import loose_tensors, named_tensors
from source_file import tensors_of

KEEPS_STATE = (
    "the module changes its own state when it is called; the reference computes its first call, "
    "and variants leave the state as it is"
)


def same_numbers(a, b):
    """Returns whether two tensors hold the same numbers, NaN counted as one."""
    return bool(((a == b) | ((a != a) & (b != b))).all())


def place_of(tensor):
    """Returns the address of the memory that a tensor is a view of."""
    return tensor.untyped_storage().data_ptr()


def outputs_of(importer, model, tensors, may_be_written):
    """Returns a module's outputs for copies of inputs, and adds a note if its state changes.

    may_be_written: the tensors of the module that a call may write.
    """
    leaves, layout = torch.utils._pytree.tree_flatten(importer.inputs)
    queue = iter([t.clone() for t in tensors])
    arguments = torch.utils._pytree.tree_unflatten(
        [next(queue) if isinstance(v, torch.Tensor) else v for v in leaves], layout
    )
    state = [(t, t.detach().clone()) for t in may_be_written]
    names = [(holder, dict(holder)) for m in model.modules() for holder in (m.__dict__, m._buffers)]
    with (
        importer.source.doing("running the Model"),
        torch.no_grad(),
        torch.device("cpu"),
        AnyDevice(),
    ):
        outputs = tensors_of(model(*arguments))
    # Outputs of which nobody else has the memory may be large, and are not copied.
    held = [*tensors_of(arguments), *named_tensors(model).values(), *loose_tensors(model).values()]
    places = {place_of(t) for t in held if not t.is_meta}
    outputs = [t.clone() if place_of(t) in places else t for t in outputs]
    with torch.no_grad():
        is_kept = all(same_numbers(tensor, value) for tensor, value in state)
        for tensor, value in state:
            tensor.copy_(value)
    for holder, before in names:
        if any(before.get(name) is not value for name, value in holder.items()):
            holder.clear()
            holder.update(before)
            is_kept = False
    if not is_kept and KEEPS_STATE not in importer.notes:
        importer.notes.append(KEEPS_STATE)
    return outputs
