# ---- Runs the variant's host program on one GPU.

import contextlib as _hone_contextlib
import ctypes as _hone_ctypes
import functools as _hone_functools
import math as _hone_math

import torch as _hone_torch
from torch.utils._python_dispatch import TorchDispatchMode as _hone_TorchDispatchMode


def _hone_draw(of, shape, dtype, a=0.0, b=1.0, expression=None):
    """Draws a tensor as the task does."""
    if of == "normal":
        x = _hone_torch.randn(shape) * b + a
    elif of == "uniform":
        x = _hone_torch.rand(shape) * (b - a) + a
    elif of == "integers":
        x = _hone_torch.randint(int(a), int(b), shape)
    elif of == "constant":
        x = _hone_torch.full(shape, a)
    elif of == "permutation":
        x = _hone_torch.rand(shape).argsort(dim=-1)
    else:
        x = _hone_torch.rand(shape) < 0.5
    if expression is not None:
        operators = _hone_Operators()
        operators.device = _hone_torch.device("cpu")
        x = expression(operators, x)
    return x.to(dtype)


def _hone_operator(name):
    """Returns torch's function of this name if it is the ATen operator itself, else the operator.

    Bindings are called faster, but those with a `reduction` have other defaults than the operator,
    and torch's functions that are written in Python have other arguments.
    """
    binding = getattr(_hone_torch, name, None) or getattr(_hone_torch._C._nn, name, None)
    operator = getattr(_hone_torch.ops.aten, name, None)
    if operator is None:
        return getattr(_hone_torch, name) if binding is None else binding
    schemas = [getattr(operator, overload)._schema for overload in operator.overloads()]
    reduces = any(a.name == "reduction" for s in schemas for a in s.arguments)
    is_builtin = isinstance(binding, type(_hone_torch.relu))
    return binding if is_builtin and not reduces else operator


class _hone_Operators:
    """The name `torch` of a host program: every ATen operator, on the GPU of the call."""

    factories = {
        *("empty", "zeros", "ones", "full", "arange", "linspace", "logspace", "eye", "tensor"),
        *("scalar_tensor", "empty_strided", "tril_indices", "triu_indices", "hann_window"),
    }

    def __init__(self):
        self.device = None
        self.nn = _hone_torch.nn

    def __getattr__(self, name):
        found = _hone_operator(name)
        if name in self.factories:
            made = found

            def found(*args, **kwargs):
                return made(*args, **(kwargs | {"device": self.device}))

        setattr(self, name, found)
        return found


class _hone_KeepsResults(_hone_TorchDispatchMode):
    """Keeps the results of all operators until the end of a call: torch would give the memory of
    one to the main stream while a side stream still reads it."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.kept.append(result)
        return result


class _hone_Streams:
    """The streams of a call. Side stream k begins behind the work of the main stream, and join()
    puts all work before it in front of all work behind it."""

    def __init__(self, device):
        self.sides = [_hone_torch.cuda.Stream(device) for _ in range(8)]
        self.device, self.ahead, self.current = device, set(), 0

    def begin(self):
        self.main, self.ahead, self.current = _hone_torch.cuda.current_stream(self.device), set(), 0

    def use(self, k):
        if k > 0 and k not in self.ahead:
            self.sides[k - 1].wait_stream(self.main)
            self.ahead.add(k)
        self.current = k
        _hone_torch.cuda.set_stream(self.sides[k - 1] if k > 0 else self.main)

    def join(self):
        for k in self.ahead:
            self.main.wait_stream(self.sides[k - 1])
        self.ahead.clear()
        if self.current > 0:
            self.use(self.current)

    def end(self):
        if self.current > 0 or self.ahead:
            self.use(0)
            self.join()


class _hone_ProgramOnDevice:
    """The variant's host program and its kernels on one GPU."""

    def __init__(self, device):
        self.device, self.operators, self.streams = device, _hone_Operators(), _hone_Streams(device)
        self.operators.device = device
        self.kernels = {}
        major, minor = _hone_torch.cuda.get_device_capability(device)
        if _hone_CUDA:
            code, symbols = _hone_compile(f"sm_{major}{minor}{'a' if major >= 9 else ''}")
            module = _hone_ctypes.c_void_p()
            with _hone_torch.cuda.device(device):
                _hone_torch.cuda.current_stream().synchronize()  # makes the context current
                _hone_check(
                    _hone_cuda_driver().cuModuleLoadData(_hone_ctypes.byref(module), code),
                    "loading the kernels",
                )
            self.kernels = {n: _hone_Kernel(n, module, *symbols[n]) for n in _hone_KERNELS}
        self.forward, self.prepare = _hone_program(
            self.operators,
            _hone_torch.nn.functional,
            _hone_math,
            self.launch,
            self.streams.use,
            self.streams.join,
        )

    def launch(self, name, grid, block, *args, shared=0):
        stream = _hone_torch._C._cuda_getCurrentRawStream(self.device.index)
        self.kernels[name].launch(grid, block, args, shared, _hone_ctypes.c_void_p(stream))

    def prepared(self, parameters):
        return parameters if self.prepare is None else self.run(self.prepare, parameters)

    def call(self, arguments):
        return self.run(self.forward, arguments)

    def run(self, function, arguments):
        """Returns the results of one of the program's functions as a list."""
        self.streams.begin()
        try:
            with _hone_KeepsResults() if _hone_USES_STREAMS else _hone_contextlib.nullcontext():
                made = function(*arguments)
        finally:
            self.streams.end()
        return list(made) if isinstance(made, (tuple, list)) else [made]


@_hone_functools.cache
def _hone_program_on(device):
    return _hone_ProgramOnDevice(device)
