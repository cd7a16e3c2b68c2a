"""Executes a file with a ModelNew, which takes the place of a task's Model."""

import contextlib
import re
import sys
import types

import torch
from source_file import Failure, SourceFile

WRITE_KERNELS_IN_DOCUMENTS = (
    "a document has its kernels in a cuda block, and no extension, Triton kernel or other compiler"
)


class Uses:
    """What a file does that a graph of operators does not show.

    extensions: for each extension that the file builds, its line and whether it can be built.
    graph_line: the first line that makes a CUDA graph, or None.
    """

    def __init__(self, path):
        self.path, self.extensions, self.graph_line = path, [], None

    def line(self):
        """Returns the line of the file that is being executed, or None."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != self.path:
            frame = frame.f_back
        return frame.f_lineno if frame is not None else None

    def note_extension(self, sources, functions):
        """Notes an extension, and raises what its compiler would for undeclared functions.

        load_inline() binds `functions` in the C++ source, which has to declare them.
        """
        text = "\n".join([sources] if isinstance(sources, str) else list(sources or []))
        names = [functions] if isinstance(functions, str) else list(functions or [])
        undeclared = [n for n in names if not re.search(rf"\b{re.escape(n)}\s*\(", text)]
        self.extensions.append((self.line(), not undeclared))
        if undeclared:
            raise RuntimeError(f"error: '{undeclared[0]}' was not declared in this scope")
        raise RuntimeError(WRITE_KERNELS_IN_DOCUMENTS)

    def note_graph(self, *_, **__):
        """Notes a CUDA graph. There is no GPU to record it, so the file has to do without."""
        self.graph_line = self.graph_line or self.line()
        raise RuntimeError("CUDA graphs need a GPU")


class Inert:
    """A stream, event or context that does nothing."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


@contextlib.contextmanager
def replaced(owner, **values):
    """Replaces attributes of an object in the context."""
    missing = object()
    before = {name: owner.__dict__.get(name, missing) for name in values}
    for name, value in values.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


@contextlib.contextmanager
def like_a_gpu(uses, is_pretended):
    """Lets a file's code run without a GPU.

    is_pretended: if True, tensors say that they lie on a GPU, so that a file takes the path that it
    has for GPUs. Streams, events and memory pools do nothing.
    """
    import torch.utils.cpp_extension as extension

    with contextlib.ExitStack() as stack:
        stack.enter_context(
            replaced(
                extension,
                load_inline=lambda name=None,
                cpp_sources=None,
                cuda_sources=None,
                functions=None,
                **_: uses.note_extension(cpp_sources, functions),
                load=lambda *_, **__: uses.note_extension("", None),
            )
        )
        stack.enter_context(
            replaced(
                torch.cuda,
                CUDAGraph=uses.note_graph,
                graph=uses.note_graph,
                make_graphed_callables=uses.note_graph,
                Stream=Inert,
                Event=Inert,
                stream=lambda *_: contextlib.nullcontext(),
                current_stream=Inert,
                default_stream=Inert,
            )
        )
        if is_pretended:
            h100 = types.SimpleNamespace(
                name="NVIDIA H100 80GB HBM3",
                major=9,
                minor=0,
                total_memory=80 << 30,
                multi_processor_count=132,
                warp_size=32,
                max_threads_per_multi_processor=2048,
            )
            stack.enter_context(
                replaced(
                    torch.cuda,
                    is_available=lambda: True,
                    device_count=lambda: 1,
                    current_device=lambda: 0,
                    get_device_capability=lambda *_: (9, 0),
                    get_device_name=lambda *_: h100.name,
                    get_device_properties=lambda *_: h100,
                )
            )
            stack.enter_context(replaced(torch.Tensor, is_cuda=property(lambda _: True)))
        yield


class CandidateFile(SourceFile):
    """A file with a ModelNew. It takes the constructor's arguments and the inputs of a task's file.

    task: the task's SourceFile. is_pretended: see like_a_gpu.
    """

    required = ("ModelNew",)

    def __init__(self, text, path, task, is_pretended):
        self.uses, self.is_pretended = Uses(path), is_pretended
        with self.without_gpu():
            super().__init__(text, path)
        self.draws, self.own_inputs = task.draws, task.own_inputs
        self.names["Model"] = self.names["ModelNew"]
        for name in ("get_inputs", "get_init_inputs"):
            self.names[name] = task.names[name]

    def without_gpu(self):
        return like_a_gpu(self.uses, self.is_pretended)

    def model(self, device):
        with self.without_gpu():
            return super().model(device)

    def require_operators(self):
        """Raises Failure if the file has its own kernels that could run."""
        lines = [line for line, can_be_built in self.uses.extensions if can_be_built]
        triton = re.search(r"^.*@triton\.(jit|autotune).*$", self.text, re.MULTILINE)
        if triton:
            lines.append(self.text.count("\n", 0, triton.start()) + 1)
        if lines:
            where = f"line {lines[0]}: " if lines[0] else ""
            raise Failure(f"{where}{WRITE_KERNELS_IN_DOCUMENTS}")
