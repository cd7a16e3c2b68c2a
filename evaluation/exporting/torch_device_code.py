# ---- Compiles and launches the variant's kernels. It needs torch and nothing else.

import contextlib as _hone_contextlib
import ctypes as _hone_ctypes
import functools as _hone_functools
import glob as _hone_glob
import os as _hone_os
import re as _hone_re
import sys as _hone_sys

import torch as _hone_torch


class _hone_Refused(Exception):
    """The reason why the variant cannot serve a call."""


def _hone_check(status, what):
    if status != 0:
        raise _hone_Refused(f"{what} failed with CUDA's error {status}")


@_hone_functools.cache
def _hone_cuda_driver():
    return _hone_ctypes.CDLL("libcuda.so.1")


def _hone_cuda_folders():
    """Returns the folders of CUDA's libraries and headers, those of torch's own packages first."""
    roots = [
        r
        for p in _hone_sys.path
        for r in _hone_glob.glob(_hone_os.path.join(p or ".", "nvidia", "*"))
    ]
    return [*roots, _hone_os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]


@_hone_functools.cache
def _hone_nvrtc():
    name = "libnvrtc.so." + _hone_torch.version.cuda.split(".")[0]
    places = [name]
    for root in _hone_cuda_folders():
        places += [_hone_os.path.join(root, folder, name) for folder in ("lib", "lib64")]
    for place in places:
        with _hone_contextlib.suppress(OSError):
            return _hone_ctypes.CDLL(place)
    raise _hone_Refused(f"{name} is not found")


@_hone_functools.cache
def _hone_include_options():
    options = []
    for root in _hone_cuda_folders():
        folder = _hone_os.path.join(root, "include")
        if _hone_os.path.exists(_hone_os.path.join(folder, "cuda_fp16.h")):
            options += [f"-I{folder}", f"-I{_hone_os.path.join(folder, 'cccl')}"]
    return options


def _hone_read_result(library, program, what):
    size = _hone_ctypes.c_size_t()
    _hone_check(getattr(library, f"nvrtcGet{what}Size")(program, _hone_ctypes.byref(size)), "NVRTC")
    text = _hone_ctypes.create_string_buffer(size.value)
    _hone_check(getattr(library, f"nvrtcGet{what}")(program, text), "NVRTC")
    return text.raw


def _hone_compile(architecture):
    """Compiles the device code. Returns the code, and each kernel's symbol and whether it is
    launched cooperatively."""
    library, program = _hone_nvrtc(), _hone_ctypes.c_void_p()
    source = (_hone_PRELUDE + '\n#line 1 "cuda"\n' + _hone_CUDA).encode()
    _hone_check(
        library.nvrtcCreateProgram(
            _hone_ctypes.byref(program), source, b"variant.cu", 0, None, None
        ),
        "NVRTC",
    )
    for kernel in _hone_KERNELS:
        _hone_check(library.nvrtcAddNameExpression(program, kernel.encode()), "naming " + kernel)
    options = [f"-arch={architecture}", "-std=c++20", "-default-device", "-w"]
    if _hone_SETTINGS["fast_math"]:
        options.append("--use_fast_math")
    if _hone_SETTINGS["max_registers"]:
        options.append(f"--maxrregcount={_hone_SETTINGS['max_registers']}")
    options = [o.encode() for o in options + _hone_include_options()]
    status = library.nvrtcCompileProgram(
        program, len(options), (_hone_ctypes.c_char_p * len(options))(*options)
    )
    if status != 0:
        log = (
            _hone_read_result(library, program, "ProgramLog").rstrip(b"\0").decode(errors="replace")
        )
        raise _hone_Refused(f"the kernels do not compile for {architecture}:\n{log}")
    code = _hone_read_result(library, program, "CUBIN")
    ptx = _hone_read_result(library, program, "PTX").decode(errors="replace")
    symbols = {}
    for kernel in _hone_KERNELS:
        lowered = _hone_ctypes.c_char_p()
        _hone_check(
            library.nvrtcGetLoweredName(program, kernel.encode(), _hone_ctypes.byref(lowered)),
            "naming " + kernel,
        )
        symbol = lowered.value.decode()
        symbols[kernel] = (symbol, _hone_synchronizes_grid(ptx, symbol))
    library.nvrtcDestroyProgram(_hone_ctypes.byref(program))
    return code, symbols


def _hone_synchronizes_grid(ptx, symbol):
    """Returns True if a kernel waits for its whole grid: it reads the address of the grid's
    workspace from an environment register."""
    entries = list(_hone_re.finditer(r"\.(entry|func)\b[^\n]*?([\w$]+)\s*\(", ptx))
    for at in _hone_re.finditer("%envreg", ptx):
        before = [e for e in entries if e.start() < at.start()]
        if not before or before[-1][1] == "func" or before[-1][2] == symbol:
            return True
    return False


class _hone_Kernel:
    """A kernel on one GPU. Arguments are passed by the size of the kernel's parameters."""

    def __init__(self, name, module, symbol, is_cooperative):
        driver, self.name = _hone_cuda_driver(), name
        self.function = _hone_ctypes.c_void_p()
        _hone_check(
            driver.cuModuleGetFunction(_hone_ctypes.byref(self.function), module, symbol.encode()),
            name,
        )
        self.start = driver.cuLaunchCooperativeKernel if is_cooperative else driver.cuLaunchKernel
        self.extra = () if is_cooperative else (None,)  # no arguments in a buffer
        self.sizes, self.shared = [], 48 << 10  # bytes that need no permission, the static included
        static_bytes, shared_size = _hone_ctypes.c_int(), 1
        if (
            driver.cuFuncGetAttribute(_hone_ctypes.byref(static_bytes), shared_size, self.function)
            == 0
        ):
            self.shared = max(0, self.shared - static_bytes.value)
        offset, size = _hone_ctypes.c_size_t(), _hone_ctypes.c_size_t()
        while True:
            status = driver.cuFuncGetParamInfo(
                self.function, len(self.sizes), _hone_ctypes.byref(offset), _hone_ctypes.byref(size)
            )
            if status != 0:
                break
            self.sizes.append(size.value)
        width, states_its_cluster, may_be_large = _hone_ctypes.c_int(), 11, 13
        if (
            driver.cuFuncGetAttribute(_hone_ctypes.byref(width), states_its_cluster, self.function)
            == 0
            and width.value > 0
        ):
            driver.cuFuncSetAttribute(self.function, may_be_large, 1)
        self.types = None  # of the arguments that the slots are for

    def make_slots(self, args):
        """Makes the memory from which a launch copies arguments of the given types."""
        if len(args) != len(self.sizes):
            raise _hone_Refused(f"{self.name} takes {len(self.sizes)} arguments, not {len(args)}")
        by_type = {
            _hone_torch.Tensor: {8: _hone_ctypes.c_uint64},
            bool: {1: _hone_ctypes.c_bool},
            int: {
                1: _hone_ctypes.c_int8,
                2: _hone_ctypes.c_int16,
                4: _hone_ctypes.c_int32,
                8: _hone_ctypes.c_int64,
            },
            float: {4: _hone_ctypes.c_float, 8: _hone_ctypes.c_double},
        }
        self.are_tensors = [isinstance(a, _hone_torch.Tensor) for a in args]
        self.slots = []
        for a, is_tensor, size in zip(args, self.are_tensors, self.sizes):
            slot = by_type.get(_hone_torch.Tensor if is_tensor else type(a), {}).get(size)
            if slot is None:
                raise _hone_Refused(f"{self.name} takes no {type(a).__name__} of {size} bytes")
            self.slots.append(slot())
        self.addresses = (_hone_ctypes.c_void_p * max(1, len(args)))(
            *[_hone_ctypes.addressof(slot) for slot in self.slots]
        )
        self.types = [*map(type, args)]

    def launch(self, grid, block, args, shared, stream):
        if [*map(type, args)] != self.types:
            self.make_slots(args)
        for slot, a, is_tensor in zip(self.slots, args, self.are_tensors):
            slot.value = a.data_ptr() if is_tensor else a
        if shared > self.shared:
            dynamic_shared = 8
            _hone_check(
                _hone_cuda_driver().cuFuncSetAttribute(self.function, dynamic_shared, shared),
                self.name,
            )
            self.shared = shared
        if 0 in grid:
            return
        grid, block = [*grid, 1, 1][:3], [*block, 1, 1][:3]  # missing extents are 1
        status = self.start(
            self.function, *grid, *block, shared, stream, self.addresses, *self.extra
        )
        if status != 0:
            _hone_check(status, self.name)
