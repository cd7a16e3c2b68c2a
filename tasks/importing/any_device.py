"""Runs a module's file on one device, whatever device the file names."""

import contextlib

import torch
from torch.overrides import TorchFunctionMode


class AnyDevice(TorchFunctionMode):
    """Makes tensors on the default device, whatever device a file names, and never pins memory."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in ("cuda", "pin_memory") and args and isinstance(args[0], torch.Tensor):
            return args[0]
        if func is torch.Tensor.to:
            given = [a for a in args[1:] if a is not None and not is_device(a)]
            if given and isinstance(given[0], bool):  # Module.to() passes no type, but flags
                given = []
            kwargs.pop("device", None)
            if not given and kwargs.get("dtype") is None and not kwargs.get("memory_format"):
                return args[0].clone() if kwargs.get("copy") else args[0]
            args = (args[0], *given)
        elif "device" in kwargs and is_device(kwargs["device"]):
            kwargs.pop("device")
        kwargs.pop("pin_memory", None)
        if func is torch.tensor:
            value = args[0] if args else kwargs.get("data")
            if type(value) in (bool, int, float):
                kwargs.pop("data", None)
                return torch.full((), value, **kwargs)  # equal, and made by a recordable call
        return func(*args, **kwargs)


@contextlib.contextmanager
def data_as_detached():
    """Makes `tensor.data`, which tracing cannot follow, `tensor.detach()`, which is the same."""
    original = torch._C.TensorBase.data
    torch.Tensor.data = property(lambda tensor: tensor.detach(), original.__set__)
    try:
        yield
    finally:
        del torch.Tensor.data


def is_device(value):
    """Returns True if `value` is a device other than meta, or the name of a CPU or CUDA device."""
    return (
        isinstance(value, torch.device)
        and value.type != "meta"
        or isinstance(value, str)
        and value.split(":")[0] in ("cuda", "cpu")
    )
