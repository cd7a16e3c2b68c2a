"""Says which arguments of forward() a task supports."""

import torch
from source_file import Failure, require_type, tensors_of
from torch.nn.utils.rnn import PackedSequence

PLAIN = (torch.Tensor, bool, int, float, complex, str, type(None))
EXPECTED = "tensors, numbers, texts, None, and lists, tuples, dicts and dataclasses of these"


def require_inputs(inputs):
    """Raises Failure unless a task supports what get_inputs() gives. inputs: a list."""
    for place, value in enumerate(inputs, 1):
        if is_packed(value):
            raise Failure(
                f"argument {place} of forward() is a PackedSequence, which tasks do not support; "
                "give the padded rows and their lengths as tensors"
            )
        for leaf in torch.utils._pytree.tree_leaves(value):
            if not isinstance(leaf, PLAIN):
                array = "; torch.from_numpy makes a tensor of an array"
                raise Failure(
                    f"argument {place} of forward() is or holds a {type(leaf).__qualname__}, and "
                    f"get_inputs() may give {EXPECTED}"
                    + (array if type(leaf).__module__ == "numpy" else "")
                )
    tensors = tensors_of(inputs)
    if not tensors:
        raise Failure("get_inputs() gives no tensor (torch.from_numpy makes one of an array)")
    for tensor in tensors:
        if tensor.is_nested:
            raise Failure(
                "an input is a nested tensor, which tasks do not support; pad the rows to one "
                "length and give a mask"
            )
        if tensor.layout != torch.strided:
            raise Failure("an input is sparse, which tasks do not support")
        require_type("an input", tensor)


def is_packed(value):
    """Returns whether an argument is a PackedSequence or a list that has one."""
    return isinstance(value, PackedSequence) or (
        type(value) in (list, tuple) and any(is_packed(part) for part in value)
    )
