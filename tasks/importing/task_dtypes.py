"""The types of a task's tensors."""

import torch

# The types that tasks support, with their names in task files.
DTYPES = {
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float64: "float64",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.bool: "bool",
}


def is_integer(dtype):
    """Returns True for the integer types of tasks and bool."""
    return dtype in (torch.int32, torch.int64, torch.bool)
