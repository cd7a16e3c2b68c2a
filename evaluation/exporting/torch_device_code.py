# ---- Compiles and launches the variant's kernels. It needs torch and nothing else.

import contextlib as _contextlib
import ctypes as _ctypes
import functools as _functools
import glob as _glob
import os as _os
import re as _re
import sys as _sys

import torch as _torch


class ExportWarning(UserWarning):
    """Says why a call ran the original module instead of the variant."""


class _Refused(Exception):
    """The reason why the variant cannot serve a call."""


def _check(status, what):
    if status != 0:
        raise _Refused(f"{what} failed with CUDA's error {status}")


@_functools.cache
def _cuda_driver():
    return _ctypes.CDLL("libcuda.so.1")


def _cuda_folders():
    """Returns the folders of CUDA's libraries and headers, those of torch's own packages first."""
    roots = [r for p in _sys.path for r in _glob.glob(_os.path.join(p or ".", "nvidia", "*"))]
    return [*roots, _os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]


@_functools.cache
def _nvrtc():
    name = "libnvrtc.so." + _torch.version.cuda.split(".")[0]
    places = [name]
    for root in _cuda_folders():
        places += [_os.path.join(root, folder, name) for folder in ("lib", "lib64")]
    for place in places:
        with _contextlib.suppress(OSError):
            return _ctypes.CDLL(place)
    raise _Refused(f"{name} is not found")


@_functools.cache
def _include_options():
    options = []
    for root in _cuda_folders():
        folder = _os.path.join(root, "include")
        if _os.path.exists(_os.path.join(folder, "cuda_fp16.h")):
            options += [f"-I{folder}", f"-I{_os.path.join(folder, 'cccl')}"]
    return options


def _read_result(library, program, what):
    size = _ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, _ctypes.byref(size)), "NVRTC")
    text = _ctypes.create_string_buffer(size.value)
    _check(getattr(library, f"nvrtcGet{what}")(program, text), "NVRTC")
    return text.raw


def _compile(architecture):
    """Compiles the device code. Returns the code, and each kernel's symbol and whether it is
    launched cooperatively."""
    library, program = _nvrtc(), _ctypes.c_void_p()
    source = (_PRELUDE + '\n#line 1 "cuda"\n' + _CUDA).encode()
    _check(
        library.nvrtcCreateProgram(_ctypes.byref(program), source, b"variant.cu", 0, None, None),
        "NVRTC",
    )
    for kernel in _KERNELS:
        _check(library.nvrtcAddNameExpression(program, kernel.encode()), "naming " + kernel)
    options = [f"-arch={architecture}", "-std=c++20", "-default-device", "-w"]
    if _SETTINGS["fast_math"]:
        options.append("--use_fast_math")
    if _SETTINGS["max_registers"]:
        options.append(f"--maxrregcount={_SETTINGS['max_registers']}")
    options = [o.encode() for o in options + _include_options()]
    status = library.nvrtcCompileProgram(
        program, len(options), (_ctypes.c_char_p * len(options))(*options)
    )
    if status != 0:
        log = _read_result(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        raise _Refused(f"the kernels do not compile for {architecture}:\n{log}")
    code = _read_result(library, program, "CUBIN")
    ptx = _read_result(library, program, "PTX").decode(errors="replace")
    symbols = {}
    for kernel in _KERNELS:
        lowered = _ctypes.c_char_p()
        _check(
            library.nvrtcGetLoweredName(program, kernel.encode(), _ctypes.byref(lowered)),
            "naming " + kernel,
        )
        symbol = lowered.value.decode()
        symbols[kernel] = (symbol, _synchronises_grid(ptx, symbol))
    library.nvrtcDestroyProgram(_ctypes.byref(program))
    return code, symbols


def _synchronises_grid(ptx, symbol):
    """Returns True if a kernel waits for its whole grid: it reads the address of the grid's
    workspace from an environment register."""
    entries = list(_re.finditer(r"\.(entry|func)\b[^\n]*?([\w$]+)\s*\(", ptx))
    for at in _re.finditer("%envreg", ptx):
        before = [e for e in entries if e.start() < at.start()]
        if not before or before[-1][1] == "func" or before[-1][2] == symbol:
            return True
    return False


class _Kernel:
    """A kernel on one GPU. Arguments are passed by the size of the kernel's parameters."""

    def __init__(self, name, module, symbol, is_cooperative):
        driver, self.name = _cuda_driver(), name
        self.function = _ctypes.c_void_p()
        _check(
            driver.cuModuleGetFunction(_ctypes.byref(self.function), module, symbol.encode()), name
        )
        self.start = driver.cuLaunchCooperativeKernel if is_cooperative else driver.cuLaunchKernel
        self.sizes, self.shared = [], 48 << 10
        offset, size = _ctypes.c_size_t(), _ctypes.c_size_t()
        while True:
            status = driver.cuFuncGetParamInfo(
                self.function, len(self.sizes), _ctypes.byref(offset), _ctypes.byref(size)
            )
            if status != 0:
                break
            self.sizes.append(size.value)
        width, states_its_cluster, may_be_large = _ctypes.c_int(), 11, 13
        if (
            driver.cuFuncGetAttribute(_ctypes.byref(width), states_its_cluster, self.function) == 0
            and width.value > 0
        ):
            driver.cuFuncSetAttribute(self.function, may_be_large, 1)
        self.slots = None

    def make_slots(self, args):
        if len(args) != len(self.sizes):
            raise _Refused(f"{self.name} takes {len(self.sizes)} arguments, not {len(args)}")
        by_type = {
            bool: {1: _ctypes.c_bool},
            int: {1: _ctypes.c_int8, 2: _ctypes.c_int16, 4: _ctypes.c_int32, 8: _ctypes.c_int64},
            float: {4: _ctypes.c_float, 8: _ctypes.c_double},
        }
        self.slots = [
            (by_type[type(a)][size] if type(a) in by_type else _ctypes.c_uint64)()
            for a, size in zip(args, self.sizes)
        ]
        self.addresses = (_ctypes.c_void_p * max(1, len(args)))(
            *[_ctypes.addressof(slot) for slot in self.slots]
        )

    def launch(self, grid, block, args, shared, stream):
        if self.slots is None:
            self.make_slots(args)
        for slot, a in zip(self.slots, args):
            slot.value = a.data_ptr() if isinstance(a, _torch.Tensor) else a
        if shared > self.shared:
            dynamic_shared = 8
            _check(
                _cuda_driver().cuFuncSetAttribute(self.function, dynamic_shared, shared), self.name
            )
            self.shared = shared
        grid = [*grid, 1, 1] if isinstance(grid, (list, tuple)) else [grid, 1, 1]
        block = [*block, 1, 1] if isinstance(block, (list, tuple)) else [block, 1, 1]
        if 0 in grid[:3]:
            return
        more = () if self.start is _cuda_driver().cuLaunchCooperativeKernel else (None,)
        status = self.start(
            self.function, *grid[:3], *block[:3], shared, stream, self.addresses, *more
        )
        _check(status, self.name)
