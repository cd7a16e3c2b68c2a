"""Records the operator calls while a module's file runs."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Call:
    """A recorded operator call.

    Tensors among the arguments are replaced by the Calls that made them, or by None if their origin
    is unknown. `shape` and `dtype` are those of the result, `position` is its place among several
    results, or None.
    """

    def __init__(self, target, args, kwargs, output, position=None):
        self.target, self.args, self.kwargs, self.position = target, args, kwargs, position
        self.shape, self.dtype = tuple(output.shape), output.dtype
        self.name = target._schema.name.split("::")[1]


class Record(TorchDispatchMode):
    """Records for every tensor the call that gave it its values.

    A write into a whole storage drops the records of the storage's other views; a write into a part
    drops all records of the storage.
    """

    def __init__(self):
        super().__init__()
        self.calls = {}  # storage -> (offset, shape, strides) -> Call
        self.kept = []  # recorded tensors, kept so that no address of a storage is reused

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        known = torch.utils._pytree.tree_map_only(torch.Tensor, self.look_up, (list(args), kwargs))
        result = func(*args, **kwargs)
        for position, output in enumerate(
            result if isinstance(result, (tuple, list)) else [result]
        ):
            if isinstance(output, torch.Tensor) and output.layout == torch.strided:
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
        if tensor.layout != torch.strided or torch.nn.parameter.is_lazy(tensor):
            return None
        storage, view = self.place_of(tensor)
        return self.calls.get(storage, {}).get(view)

    def remember(self, func, known, output, position, is_one_of_several):
        """Records an operator's result. `known`: the arguments with Calls instead of tensors."""
        storage, view = self.place_of(output)
        self.kept.append(output)
        call = Call(func, known[0], known[1], output, position if is_one_of_several else None)
        if func._schema.is_mutable:
            whole = output.numel() * output.element_size() == output.untyped_storage().nbytes()
            self.calls[storage] = {view: call} if whole else {}
        else:
            self.calls.setdefault(storage, {})[view] = call
