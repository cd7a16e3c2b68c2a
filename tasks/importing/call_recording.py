"""Records the operator calls while a module's file runs."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


def draws_numbers(func):
    """Returns whether an operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in func.tags


def is_recordable(value):
    return isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_nested


class Call:
    """A recorded operator call.

    Tensors among the arguments are replaced by the Calls that made them, or by None if their origin
    is unknown. `shape` and `dtype` are those of the result, `position` is its place among several
    results, or None. `draw` counts the operators that draw random numbers, up to this one.
    """

    def __init__(self, target, args, kwargs, output, position=None):
        self.target, self.args, self.kwargs, self.position = target, args, kwargs, position
        self.shape, self.dtype = tuple(output.shape), output.dtype
        self.name = target._schema.name.split("::")[1]
        self.draw = 0


class Record(TorchDispatchMode):
    """Records for every tensor the call that gave it its values.

    A write into a whole storage drops the records of the storage's other views; a write into a part
    drops all records of the storage.

    draws: the number of operators so far that draw random numbers.
    """

    def __init__(self):
        super().__init__()
        self.calls = {}  # storage -> (offset, shape, strides) -> Call
        self.draws = 0
        self.kept = []  # recorded tensors, kept so that no address of a storage is reused

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        known = torch.utils._pytree.tree_map_only(torch.Tensor, self.look_up, (list(args), kwargs))
        result = func(*args, **kwargs)
        self.draws += draws_numbers(func)
        for position, output in enumerate(
            result if isinstance(result, (tuple, list)) else [result]
        ):
            if is_recordable(output):
                self.remember(func, known, output, position, isinstance(result, (tuple, list)))
        return result

    @staticmethod
    def place_of(tensor):
        """Returns a tensor's storage and its place there, the two keys of `calls`."""
        return tensor.untyped_storage()._cdata, (
            tensor.storage_offset(),
            tuple(tensor.shape),
            tensor.stride(),
        )

    def look_up(self, tensor):
        """Returns the Call that gave a tensor its values, or None if it is unknown."""
        if not is_recordable(tensor) or torch.nn.parameter.is_lazy(tensor):
            return None
        storage, view = self.place_of(tensor)
        return self.calls.get(storage, {}).get(view)

    def remember(self, func, known, output, position, is_one_of_several):
        """Records an operator's result. `known`: the arguments with Calls instead of tensors."""
        storage, view = self.place_of(output)
        self.kept.append(output)
        call = Call(func, known[0], known[1], output, position if is_one_of_several else None)
        call.draw = self.draws
        if func._schema.is_mutable:
            whole = output.numel() * output.element_size() == output.untyped_storage().nbytes()
            self.calls[storage] = {view: call} if whole else {}
        else:
            self.calls.setdefault(storage, {})[view] = call
