"""Executes a module's file and calls its factories.

If the file's sizes are too large to run, it can be executed with smaller numbers.
"""

import ast
import contextlib
import dataclasses
import inspect
import random
import re
import sys
import types
from unittest import mock

import numpy
import torch
from any_device import AnyDevice
from call_recording import Record
from drawn_inside import take_draws
from task_dtypes import DTYPES
from torch.nn.modules.lazy import LazyModuleMixin
from torchscript_text import USES_AUTOCAST

FAR_SEEDS = 900_000_000
TOO_MUCH_MEMORY = "more memory than an import may have (--megabytes)"


class Failure(Exception):
    """A file cannot be imported; the message says why, in a sentence for the file's author."""


class Unreadable(Failure):
    """A file is not Python, or does not define what it has to."""


def reason(error, path):
    """Returns an exception in one line, with the line of the file `path` if that is known."""
    text = re.sub(r"\s+", " ", str(error)).strip()
    line = None
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = trace.tb_lineno
        trace = trace.tb_next
    where = f"line {line}: " if line else ""
    return (
        f"{where}{type(error).__name__}: {text[:300]}" if text else f"{where}{type(error).__name__}"
    )


def replace_device_calls():
    """Replaces functions of PyTorch that would do something else here than on a GPU."""
    autocast = torch.amp.autocast_mode.autocast
    original = autocast.__init__

    def without_casts(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if enabled:
            raise Failure(USES_AUTOCAST)
        original(self, device_type, dtype, enabled, cache_enabled)

    if not getattr(original, "is_replaced", False):
        without_casts.is_replaced = True
        autocast.__init__ = without_casts
    torch.cuda.synchronize = lambda *_, **__: None
    torch.cuda.empty_cache = lambda *_, **__: None
    torch.cuda.set_device = lambda *_, **__: None
    torch.set_default_device = lambda *_, **__: None  # one function under two names confuses dynamo
    torch.Generator = CpuGenerator
    # Checks of arguments, which tracing cannot follow; sound arguments pass them.
    torch.distributions.Distribution.set_default_validate_args(False)


class CpuGenerator(torch.Generator):
    """A generator of the CPU, whatever device a file names."""

    def __new__(cls, device=None):
        return super().__new__(cls, "cpu")


class SmallerNumbers(ast.NodeTransformer):
    """Divides integers that look like sizes by a factor.

    These are the integers of 32 and more in assignments at the file's top level, in get_inputs()
    and in get_init_inputs().
    """

    def __init__(self, factor):
        self.factor, self.inside = factor, False

    def smaller(self, value):
        """Returns an integer divided, but not below 16.

        A number below 1024 that is no multiple of the factor becomes odd, or 16.
        """
        return (
            value
            if value < 32
            else max(16, value // self.factor)
            if value % self.factor == 0 or value >= 1024
            else max(16, value // self.factor | 1)
        )

    def visit_Module(self, node):
        for statement in node.body:
            if (
                isinstance(statement, (ast.Assign, ast.AnnAssign))
                or isinstance(statement, ast.FunctionDef)
                and statement.name in ("get_inputs", "get_init_inputs")
            ):
                self.generic_visit(statement)
        return node

    def visit_Constant(self, node):
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return ast.copy_location(ast.Constant(self.smaller(node.value)), node)
        return node


class SourceFile:
    """A module's file after its execution, in this process.

    text: the file's source.
    path: its path, for messages.
    factor: the number by which its larger integers are divided.
    names: the file's global names.
    draws: what forward() draws, as Draws.noted; the draws become inputs once it is set.
    own_inputs: the number of the other inputs, set together with `draws`.

    Tensors that the file makes at its top level are real ones. The constructor raises Failure if
    the file cannot be executed or lacks a required name. `model`, `inputs` and `recorded` let the
    exceptions of the file's code through; `doing` turns these into Failure.
    """

    required = ("Model", "get_inputs", "get_init_inputs")  # names that the file has to define

    def __init__(self, text, path, factor=1):
        self.text, self.path, self.draws, self.own_inputs = text, path, [], 0
        try:
            tree = ast.parse(text, path)
        except SyntaxError as error:
            raise Unreadable(f"line {error.lineno}: it is not valid Python: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise Unreadable(f"it is not valid Python: {error}") from None
        if factor > 1:
            tree = SmallerNumbers(factor).visit(tree)
        replace_device_calls()
        module = types.ModuleType("imported_module")
        module.__file__ = path
        sys.modules[module.__name__] = module
        try:
            with AnyDevice(), keeping_seed(1):
                exec(compile(tree, path, "exec"), module.__dict__)
        except ModuleNotFoundError as error:
            raise Failure(
                f"it imports {error.name}, which is not installed "
                "(HONE_PYTHON names another Python)"
            ) from None
        except Failure:
            raise
        except Exception as error:
            why = reason(error, path)
            if "CUDA in forked subprocess" in why or "No CUDA GPUs" in why:
                why = "it asks for a GPU at its top level, and imports run without one"
            raise Failure(f"running the file fails: {why}") from None
        self.names = module.__dict__
        require_default_type()
        # The exporter flattens only those dataclasses that are registered with it.
        for value in list(self.names.values()):
            if (
                dataclasses.is_dataclass(value)
                and isinstance(value, type)
                and value.__module__ == module.__name__
            ):
                torch.export.register_dataclass(
                    value, serialized_type_name=f"{value.__qualname__}@{id(value)}"
                )
        missing = [n for n in self.required if n not in self.names]
        if missing:
            raise Unreadable(f"it defines no {' and no '.join(missing)}")

    @contextlib.contextmanager
    def doing(self, what):
        """Turns exceptions in its context into Failures whose messages start with `what`."""
        try:
            yield
        except Failure:
            raise
        except MemoryError:
            raise Failure(f"{what} needs {TOO_MUCH_MEMORY}") from None
        except Exception as error:
            text = str(error)
            if "can't allocate memory" in text or "DefaultCPUAllocator" in text:
                raise Failure(f"{what} needs {TOO_MUCH_MEMORY}") from None
            raise Failure(f"{what} fails: {reason(error, self.path)}") from None

    def model(self, device, seed=1):
        """Makes a Model in eval mode. Raises Failure if it is not a torch.nn.Module."""
        made = self.made(device, seed)
        for part in made.modules():  # forward() cannot be traced if it fills a buffer
            for name in [name for name, value in part._buffers.items() if value is None]:
                del part._buffers[name]
                setattr(part, name, None)
        lazy = [n for n, m in made.named_modules() if isinstance(m, LazyModuleMixin)]
        if lazy:
            # They get their shapes and values in the first call, which may change other state.
            called = self.made(device, seed)
            inputs = self.inputs(device, seed)[: self.own_inputs or None]
            with torch.device(device), AnyDevice(), torch.no_grad(), keeping_seed(seed):
                called(*inputs)
            for name in lazy:
                made.set_submodule(name, called.get_submodule(name))
        return self.with_draws(made)

    def init_inputs(self, device, seed=1):
        """Returns the arguments of the Model, a list or a dict."""
        with torch.device(device), AnyDevice(), keeping_seed(seed):
            return self.named_init_inputs()

    def named_init_inputs(self):
        given = self.names["get_init_inputs"]()
        if given is None:
            return []
        return given if isinstance(given, (dict, list, tuple)) else [given]

    def made(self, device, seed):
        """The same without what the importer changes."""
        with torch.device(device), AnyDevice(), keeping_seed(seed):
            given = self.named_init_inputs()
            positional, named = init_arguments(self.names["Model"], given)
            made = self.names["Model"](*positional, **named)
        require_default_type()
        if not isinstance(made, torch.nn.Module):
            raise Failure("Model is not a torch.nn.Module")
        made.eval()  # whose own train() need not return the module
        return made

    def with_draws(self, model):
        """Makes the module take its draws as inputs, and returns it."""
        if self.draws:
            take_draws(model, self.own_inputs, len(self.draws))
        return model

    def inputs(self, device, seed=1):
        """Returns the arguments of forward as a list; its tensors are on the given device."""
        with torch.device(device), AnyDevice(), keeping_seed(seed):
            given = self.names["get_inputs"]()
            if isinstance(given, dict):
                given = self.in_order(given)
            given = (
                list(given) if isinstance(given, (list, tuple, types.GeneratorType)) else [given]
            )
            given += [draw(shape, dtype=dtype) for draw, shape, dtype in self.draws]
        require_default_type()
        return torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.detach(), given)

    def in_order(self, named):
        """Returns arguments that are given by name in the order in which forward takes them."""
        try:
            bound = inspect.signature(self.names["Model"].forward).bind(None, **named)
        except TypeError as error:
            raise Failure(
                f"get_inputs() names arguments that forward does not take: {error}"
            ) from error
        if bound.kwargs:
            raise Failure(f"forward takes {', '.join(bound.kwargs)} by name only")
        return bound.args[1:]

    def recorded(self, make):
        """Returns the result of `make(device)` and the Record of its calls.

        The device is meta, or the CPU if `make` fails on the meta device.
        """
        for device in ("meta", "cpu"):
            record = Record()
            try:
                with record:
                    return make(device), record
            except Failure:
                raise
            except Exception:
                if device == "cpu":
                    raise
        return None


def init_arguments(model, given):
    """Returns the positional and the named arguments of a Model. given: of get_init_inputs(), a
    list, a dict, or a list of both, as KernelBook's files have it."""
    if isinstance(given, dict):
        return [], given
    is_pair = len(given) == 2 and isinstance(given[0], (list, tuple)) and isinstance(given[1], dict)
    if is_pair and all(isinstance(key, str) for key in given[1]):
        try:
            inspect.signature(model).bind(*given[0], **given[1])
            return given[0], given[1]
        except TypeError:
            pass
    return given, {}


def require_default_type():
    """Raises Failure if the file has changed the type of tensors that name none."""
    changed = torch.get_default_dtype()
    if changed != torch.float32:
        torch.set_default_dtype(torch.float32)
        raise Failure(
            f"it sets the default type of tensors to {changed}, and a task's is torch.float32; "
            "give the tensors their type where they are made"
        )


@contextlib.contextmanager
def keeping_seed(seed):
    """Seeds torch, NumPy and random. Seeds other than 1, the file's own draw, stay whatever the
    file sets, and become numbers that a file is unlikely to set."""
    seed = seed if seed == 1 else FAR_SEEDS + seed
    torch.manual_seed(seed)
    random.seed(seed)
    numpy.random.seed(seed)
    if seed == 1:
        yield
        return
    generator = numpy.random.default_rng
    with (
        mock.patch.object(torch, "manual_seed", lambda _: torch.default_generator),
        mock.patch.object(random, "seed", lambda *_: None),
        mock.patch.object(numpy.random, "seed", lambda *_: None),
        mock.patch.object(numpy.random, "default_rng", lambda *_: generator(seed)),
    ):
        yield


def tensors_of(values):
    """Returns the tensors in nested values, in order."""
    return [v for v in torch.utils._pytree.tree_leaves(values) if isinstance(v, torch.Tensor)]


def require_type(what, tensor):
    """Raises Failure if tasks do not support a tensor's type; `what` names the tensor."""
    if tensor.dtype not in DTYPES:
        raise Failure(
            f"{what} is of type {str(tensor.dtype).removeprefix('torch.')}, "
            "which tasks do not support"
        )


def bytes_of(tensors):
    """Returns the sum of the tensors' sizes in bytes."""
    return sum(t.numel() * t.element_size() for t in tensors)
