# ---- Runs the variant's host program on one GPU.

import collections as _hone_collections
import ctypes as _hone_ctypes
import functools as _hone_functools
import math as _hone_math
import warnings as _hone_warnings

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


def _hone_makes_tensors_of_none(name):
    """Returns True if the operator takes no tensor, but a device."""
    operator = getattr(_hone_torch.ops.aten, name, None)
    overloads = [] if operator is None else operator.overloads()
    schemas = [getattr(operator, overload)._schema for overload in overloads]
    return name == "tensor" or any(
        any(a.name == "device" for a in schema.arguments)
        and not any("Tensor" in str(a.type) for a in schema.arguments)
        for schema in schemas
    )


class _hone_Operators:
    """The name `torch` of a host program: every ATen operator, on the GPU of the call."""

    def __init__(self):
        self.device = None
        self.nn = _hone_torch.nn

    def __getattr__(self, name):
        found = _hone_operator(name)
        if _hone_makes_tensors_of_none(name):
            made = found

            def found(*args, **kwargs):
                kwargs["device"] = self.device
                return made(*args, **kwargs)

        setattr(self, name, found)
        return found


_hone_NUMERICS = (
    _hone_SETTINGS["tf32"],
    _hone_SETTINGS["tf32"],
    _hone_SETTINGS["cudnn_benchmark"],
)


# torch.backends calls the same functions, but takes half a microsecond for each.
def _hone_read_numerics():
    """Returns torch's TF32 for matrix products and for cuDNN, and cuDNN's autotuning."""
    c = _hone_torch._C
    try:
        return c._get_cublas_allow_tf32(), c._get_cudnn_allow_tf32(), c._get_cudnn_benchmark()
    except RuntimeError as error:  # the newer settings of precision exclude these
        raise _hone_Refused(f"torch's TF32 cannot be read: {error}") from error


def _hone_write_numerics(wanted):
    _hone_torch._C._set_cublas_allow_tf32(wanted[0])
    _hone_torch._C._set_cudnn_allow_tf32(wanted[1])
    _hone_torch._C._set_cudnn_benchmark(wanted[2])


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

    device_type = "cuda"

    def __init__(self, device):
        self.device, self.stream = device, _hone_ctypes.c_void_p()
        self.operators, self.streams = _hone_Operators(), _hone_Streams(device)
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
        self.stream.value = self.current_stream()
        self.kernels[name].launch(grid, block, args, shared, self.stream)

    def is_current(self):
        return _hone_torch._C._cuda_getDevice() == self.device.index

    def current_stream(self):
        """Returns the address of the device's current stream."""
        return _hone_torch._C._cuda_getCurrentRawStream(self.device.index)

    def synchronize(self):
        _hone_torch.cuda.current_stream(self.device).synchronize()

    def prepared(self, parameters):
        """Returns what the program's `prepare` makes of the parameters, ready for any stream."""
        made = parameters if self.prepare is None else self.run(self.prepare, parameters)
        self.synchronize()
        return made

    def call(self, arguments):
        return self.run(self.forward, arguments)

    def run(self, function, arguments):
        """Returns the results of one of the program's functions as a list."""
        if not _hone_USES_STREAMS:
            made = function(*arguments)
        else:
            self.streams.begin()
            try:
                with _hone_KeepsResults():
                    made = function(*arguments)
            finally:
                self.streams.end()
        return list(made) if isinstance(made, (tuple, list)) else [made]


class _hone_Captured:
    """A call as a CUDA graph. It keeps the memory of its parameters and outputs. The caller keeps
    the inputs, whose addresses are the same whenever it is replayed."""

    def __init__(self, program, arguments):
        self.graph, self.parameters = _hone_torch.cuda.CUDAGraph(), arguments[_hone_INPUTS:]
        stream = _hone_torch.cuda.Stream(program.device)
        with _hone_torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
            self.outputs = program.call(arguments)
        self.storages = [o.untyped_storage() for o in self.outputs]
        self.own_uses = self.uses()

    def uses(self):
        return [_hone_torch._C._storage_Use_Count(s._cdata) for s in self.storages]

    def is_held(self):
        return self.uses() != self.own_uses

    def replay(self):
        self.graph.replay()
        return [o.detach() for o in self.outputs]


class _hone_Graphs:
    """Calls as CUDA graphs. A call that comes a second time with the same addresses is captured,
    and replayed from then on. A replay writes to the outputs of its capture, so that a graph is
    replayed only when nobody holds these any more. Two graphs take turns where the caller holds the
    last result during the next call, as in a loop."""

    max_graphs = 8  # addresses of calls
    max_captures = 2  # of a call with the same addresses

    def __init__(self):
        self.captured = _hone_collections.OrderedDict()  # by the addresses of a call
        self.can_capture = True

    def clear(self):
        self.captured.clear()

    def call(self, program, arguments):
        key = (
            *((x.data_ptr(), x.shape, x.dtype) for x in arguments[:_hone_INPUTS]),
            program.current_stream(),
            _hone_torch.is_inference_mode_enabled(),
        )
        captured = self.captured.get(key)
        if captured is None:
            self.captured[key] = []
            if len(self.captured) > self.max_graphs:
                self.captured.popitem(last=False)
            return program.call(arguments)
        self.captured.move_to_end(key)
        for graph in captured:
            if not graph.is_held():
                return graph.replay()
        if len(captured) < self.max_captures and self.can_capture:
            try:
                captured.append(_hone_Captured(program, arguments))
            except RuntimeError as error:
                self.can_capture = False
                _hone_warnings.warn(
                    f"a CUDA graph cannot be captured, so calls are launched: {error}",
                    ExportWarning,
                    stacklevel=2,
                )
            else:
                return captured[-1].replay()
        return program.call(arguments)


@_hone_functools.cache
def _hone_program_on(device):
    return _hone_ProgramOnDevice(device)
