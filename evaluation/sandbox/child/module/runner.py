"""Runs Python modules for a judge: loads a library and serves.

usage: runner.py LIBRARY DEVICE

libhone-module.so forks a confined process per session, on a CPU. libhone-gpu-module.so confines
this process for one session on the GPU cuda:0. Both call the hooks below. Nothing that these return
is believed: the judge reads outputs from the arena, and its own clocks.
"""

import copy
import ctypes
import gc
import linecache
import logging
import re
import sys
import tempfile
import traceback
import types
import warnings

import torch

logging.disable(logging.WARNING)  # of a machine without CUDA
import torch.utils.cpp_extension  # noqa: E402

PROGRAM = "<python>"  # the file name of a candidate's text
INIT_SEED = 42  # for get_init_inputs(), which rarely draws
COMPILE_ERROR, CRASH = 3, 5  # of hone::Outcome
CAPSULE, USED_CAPSULE = b"dltensor", b"used_dltensor"
MAX_OUTPUTS = 64

new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = (
    ctypes.py_object,
    [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p],
)
pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
rename = ctypes.pythonapi.PyCapsule_SetName
rename.argtypes = [ctypes.py_object, ctypes.c_char_p]
to_dlpack, from_dlpack = torch._C._to_dlpack, torch._C._from_dlpack


def given_away(tensor):
    """Returns the address of a DLManagedTensor that its receiver has to release."""
    capsule = to_dlpack(tensor)
    address = pointer_of(capsule, CAPSULE)
    rename(capsule, USED_CAPSULE)
    return address


def execute(text, file, name):
    """Returns a module that a text makes. Its source is what `inspect` finds."""
    module = types.ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec", dont_inherit=True), module.__dict__)
    return module


def describe(error):
    """Returns an exception in one line, with the line of the candidate's text that it came from."""
    place = ""
    if isinstance(error, SyntaxError) and error.filename == PROGRAM:
        return f"python:{error.lineno}: {error.msg}"
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename == PROGRAM:
            place = f"python:{line}: "
    text = str(error)[:20000].split("\nException raised from")[0]
    if "Traceback of TorchScript" in text:
        text = text.rsplit("Error: ", 1)[-1]
    text = re.sub(r"\s+", " ", text).strip()
    return f"{place}{type(error).__name__}: {text}"[:1000]


def plain(name):
    """Returns the name that a task gives the tensor of a module: conv_weight for conv.weight."""
    return re.sub(r"\W", "_", name)


class Arguments:
    """The arguments of a call, as a task's get_inputs() shows them: tensors and other values."""

    def __init__(self, task):
        self.leaves, self.layout = [], None
        try:
            with torch.device("meta"):
                inputs = list(task.get_inputs())
        except Exception:  # there is none, or it needs real tensors
            return
        leaves, layout = torch.utils._pytree.tree_flatten(inputs)
        if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
            self.leaves, self.layout = leaves, layout

    def around(self, tensors):
        """Returns the arguments of a call with these tensors."""
        places = sum(isinstance(leaf, torch.Tensor) for leaf in self.leaves)
        if self.layout is None or places != len(tensors):
            return tensors
        left = iter(tensors)
        leaves = [next(left) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        return torch.utils._pytree.tree_unflatten(leaves, self.layout)


def named_tensors(model):
    """Yields a module's tensors by the names that a task gives them."""
    for path, module in model.named_modules():
        for owner in (module._parameters, module._buffers, vars(module)):
            for name, value in owner.items():
                if isinstance(value, torch.Tensor):
                    yield plain(f"{path}.{name}" if path else name), value


class Runner:
    """The hooks. They return None if they succeed."""

    def __init__(self, device):
        self.device = torch.device(device)
        self.constructor_arguments, self.arguments = (), None
        self.module_class, self.model = None, None
        self.inputs, self.failure = [], COMPILE_ERROR

    def load(self, task, program, class_name):
        torch.manual_seed(INIT_SEED)
        made = execute(task.decode(), "<task>", "task")
        self.constructor_arguments = tuple(getattr(made, "get_init_inputs", tuple)())
        self.arguments = Arguments(made)
        module = execute(program.decode(), PROGRAM, "program")
        self.module_class = getattr(module, class_name.decode(), None)
        if self.module_class is None:
            raise NameError(f"there is no class {class_name.decode()}")

    def make(self, seed):
        self.failure = CRASH
        self.inputs, self.model = [], None
        gc.collect()
        torch.manual_seed(seed)
        model = self.module_class(*copy.deepcopy(self.constructor_arguments))
        if isinstance(model, torch.nn.Module):
            model = model.eval().requires_grad_(False).to(self.device)
        self.model = model
        torch.set_grad_enabled(False)

    def find(self, name):
        wanted = name.decode()
        for known, tensor in named_tensors(self.model):
            if known == wanted:
                return given_away(tensor.detach())
        return 0

    def stage(self, calls, count, tensors):
        taken = [from_dlpack(new_capsule(tensors[i], CAPSULE, None)) for i in range(calls * count)]
        self.inputs = [
            self.arguments.around(taken[i * count : (i + 1) * count]) for i in range(calls)
        ]

    def call(self, number, row_major, into):
        result = self.model(*self.inputs[number])
        outputs = (result,) if isinstance(result, torch.Tensor) else leaves(result)
        for i, tensor in enumerate(outputs):
            if type(tensor) is not torch.Tensor or tensor.requires_grad:
                tensor = tensor.detach()
            into[i] = given_away(tensor.contiguous() if row_major >> i & 1 else tensor)
        return len(outputs)


def start_no_compiler(*_, **__):
    raise RuntimeError(
        "a judged process starts no compiler, so torch.compile and extensions that are built at "
        "run time (load_inline, load) cannot be judged here"
    )


def leaves(result):
    """Returns the tensors of a tuple, list or dict. Raises TypeError if it has none or others."""
    tensors = torch.utils._pytree.tree_leaves(result)
    if not tensors or not all(isinstance(t, torch.Tensor) for t in tensors):
        kinds = ", ".join(sorted({type(t).__name__ for t in tensors})) or type(result).__name__
        raise TypeError(f"forward() returns {kinds}, and not tensors alone")
    if len(tensors) > MAX_OUTPUTS:
        raise TypeError(f"forward() returns {len(tensors)} tensors")
    return tensors


def warm_up_gpu():
    """Makes the context, and loads the libraries and kernels that a first call would load."""
    torch.backends.cudnn.allow_tf32 = False  # as for other programs; a module may change it
    a = torch.ones(64, 64, device="cuda")
    torch.addmm(a[0], a, a).softmax(1).sum()
    torch.nn.functional.conv2d(a[None, None], a[None, None, :3, :3])
    torch.cuda.synchronize()


def main():
    path, device = sys.argv[1:]
    library = ctypes.PyDLL(path)
    fail = library.hone_fail
    fail.argtypes, fail.restype = [ctypes.c_int, ctypes.c_char_p], None
    runner = Runner(device)

    def guarded(hook, result):
        failed = None if result is ctypes.c_void_p else -1

        def run(*arguments):
            try:
                return hook(*arguments) or 0
            except BaseException as error:
                try:
                    message = describe(error)
                except BaseException:
                    message = "an exception that cannot be printed"
                fail(runner.failure, message.encode(errors="replace"))
                return failed

        return run

    text, number, many = ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p)
    kinds = {
        "load": (ctypes.c_int, text, text, text),
        "make": (ctypes.c_int, ctypes.c_uint64),
        "find": (ctypes.c_void_p, text),
        "stage": (ctypes.c_int, number, number, many),
        "call": (ctypes.c_int, number, ctypes.c_uint64, many),
    }
    hooks = [
        ctypes.PYFUNCTYPE(*k)(guarded(getattr(runner, name), k[0])) for name, k in kinds.items()
    ]
    addresses = (ctypes.c_void_p * len(hooks))(
        *[ctypes.cast(hook, ctypes.c_void_p).value for hook in hooks]
    )
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.compile = start_no_compiler
    torch.utils.cpp_extension.load = torch.utils.cpp_extension.load_inline = start_no_compiler
    tempfile.tempdir = "/"  # nothing can be written; some packages ask for the name when imported
    sys.argv = [""]
    with torch.device("meta"):
        torch.randn(1) * 2  # imports 1,400 modules here and not in every fork
    if device != "cpu":
        warm_up_gpu()
    gc.collect()
    gc.freeze()
    library.hone_serve_modules(addresses)


main()
