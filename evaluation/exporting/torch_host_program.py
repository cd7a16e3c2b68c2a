# ---- Runs the variant's host program on one GPU.

import ctypes as _ctypes
import functools as _functools
import math as _math

import torch as _torch


def _draw(of, shape, dtype, a=0.0, b=1.0, expression=None):
    """Draws a tensor as the task does."""
    if of == "normal":
        x = _torch.randn(shape) * b + a
    elif of == "uniform":
        x = _torch.rand(shape) * (b - a) + a
    elif of == "integers":
        x = _torch.randint(int(a), int(b), shape)
    elif of == "constant":
        x = _torch.full(shape, a)
    elif of == "permutation":
        x = _torch.rand(shape).argsort(dim=-1)
    else:
        x = _torch.rand(shape) < 0.5
    if expression is not None:
        operators = _Operators()
        operators.device = _torch.device("cpu")
        x = expression(operators, x)
    return x.to(dtype)


def _operator(name):
    """Returns torch's function of this name if it is the ATen operator itself, else the operator.

    Bindings are called faster, but those with a `reduction` have other defaults than the operator,
    and torch's functions that are written in Python have other arguments.
    """
    binding = getattr(_torch, name, None) or getattr(_torch._C._nn, name, None)
    operator = getattr(_torch.ops.aten, name, None)
    if operator is None:
        return getattr(_torch, name) if binding is None else binding
    schemas = [getattr(operator, overload)._schema for overload in operator.overloads()]
    reduces = any(a.name == "reduction" for s in schemas for a in s.arguments)
    is_builtin = isinstance(binding, type(_torch.relu))
    return binding if is_builtin and not reduces else operator


class _Operators:
    """The name `torch` of a host program: every ATen operator, on the GPU of the call."""

    factories = {
        *("empty", "zeros", "ones", "full", "arange", "linspace", "logspace", "eye", "tensor"),
        *("scalar_tensor", "empty_strided", "tril_indices", "triu_indices", "hann_window"),
    }

    def __init__(self):
        self.device = None
        self.nn = _torch.nn

    def __getattr__(self, name):
        found = _operator(name)
        if name in self.factories:
            made = found

            def found(*args, **kwargs):
                return made(*args, **(kwargs | {"device": self.device}))

        setattr(self, name, found)
        return found


class _Streams:
    """The streams of a call. Side stream k begins behind the work of the main stream, and join()
    puts all work before it in front of all work behind it."""

    def __init__(self, device):
        self.sides = [_torch.cuda.Stream(device) for _ in range(8)]
        self.device, self.ahead, self.current = device, set(), 0

    def begin(self):
        self.main, self.ahead, self.current = _torch.cuda.current_stream(self.device), set(), 0

    def use(self, k):
        if k > 0 and k not in self.ahead:
            self.sides[k - 1].wait_stream(self.main)
            self.ahead.add(k)
        self.current = k
        _torch.cuda.set_stream(self.sides[k - 1] if k > 0 else self.main)

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


class _ProgramOnDevice:
    """The variant's host program and its kernels on one GPU."""

    def __init__(self, device):
        self.device, self.operators, self.streams = device, _Operators(), _Streams(device)
        self.operators.device = device
        self.kernels = {}
        major, minor = _torch.cuda.get_device_capability(device)
        if _CUDA:
            code, symbols = _compile(f"sm_{major}{minor}{'a' if major >= 9 else ''}")
            module = _ctypes.c_void_p()
            with _torch.cuda.device(device):
                _torch.cuda.current_stream().synchronize()  # makes the context current
                _check(
                    _cuda_driver().cuModuleLoadData(_ctypes.byref(module), code),
                    "loading the kernels",
                )
            self.kernels = {n: _Kernel(n, module, *symbols[n]) for n in _KERNELS}
        self.forward, self.prepare = _program(
            self.operators,
            _torch.nn.functional,
            _math,
            self.launch,
            self.streams.use,
            self.streams.join,
        )

    def launch(self, name, grid, block, *args, shared=0):
        if self.streams.ahead:
            current = _torch.cuda.current_stream(self.device)
            for a in args:
                if isinstance(a, _torch.Tensor):
                    a.record_stream(current)
        stream = _torch._C._cuda_getCurrentRawStream(self.device.index)
        self.kernels[name].launch(grid, block, args, shared, _ctypes.c_void_p(stream))

    def call(self, arguments):
        self.streams.begin()
        try:
            return self.forward(*arguments)
        finally:
            self.streams.end()


@_functools.cache
def _program_on(device):
    return _ProgramOnDevice(device)
