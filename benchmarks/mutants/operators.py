"""Runs TorchScript programs as Python, on any device and in float64.

Hone's front end resolves `torch.NAME` as the operator aten::NAME. Here `torch` is an object that
does the same.
"""

import math
from typing import Optional  # noqa: UP035 (the names that TorchScript knows)

import torch

FACTORIES = {
    "arange", "empty", "eye", "full", "linspace", "logspace", "ones", "rand", "scalar_tensor",
    "tril_indices", "triu_indices", "zeros",
}  # fmt: skip


# What programs raise that cannot be run.
PROGRAM_ERRORS = (
    RuntimeError, LookupError, TypeError, ValueError, ArithmeticError, AttributeError,
)  # fmt: skip


class Aten:
    """What the name `torch` means in a program.

    device: where factory functions allocate. is_float64: torch.float32 means float64.
    """

    def __init__(self, device="cpu", is_float64=False):
        self._device, self._is_float64 = device, is_float64

    def __getattr__(self, name):
        value = self._resolve(name)
        setattr(self, name, value)  # so that the next use finds it at once
        return value

    def _resolve(self, name):
        known = getattr(torch, name, None)
        if isinstance(known, torch.dtype):
            return torch.float64 if self._is_float64 and known == torch.float32 else known
        if isinstance(known, (torch.memory_format, torch.layout)):
            return known
        if name == "tensor":
            return self._on_device(torch.tensor)
        operator = getattr(torch.ops.aten, name)
        return self._on_device(operator) if name in FACTORIES else operator

    def _on_device(self, factory):
        def made(*arguments, **keywords):
            keywords.setdefault("device", self._device)
            result = factory(*arguments, **keywords)
            is_narrow = self._is_float64 and result.dtype == torch.float32
            return result.double() if is_narrow and "dtype" not in keywords else result

        return made


def names_of(aten):
    """Returns the global names of a program."""
    return {
        "torch": aten, "Tensor": torch.Tensor, "List": list, "Optional": Optional, "Tuple": tuple,
        "math": math,
    }  # fmt: skip


def forward_of(text, device="cpu", is_float64=False):
    """Returns the function `forward` of a program."""
    names = names_of(Aten(device, is_float64))
    exec(compile(text, "program", "exec"), names)
    return names["forward"]


def outputs_of(result):
    return list(result) if isinstance(result, tuple) else [result]
