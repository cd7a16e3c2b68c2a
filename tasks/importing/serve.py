"""Imports modules for `hone task import`, each in a process forked from this one.

This process has torch loaded and warm, which saves its start in every fork.

The first line on standard input is {"filter": a seccomp program in hexadecimal digits}, which
confines the forked processes. The first line on standard output is {"is_ready": true}. Every
further line on standard input is a request, a JSON object:

path, name: the module's file and the task's name.
seconds: the limit on processor time.
bytes: the limit on address space.
varies_constants, is_relaxed, dtype, fixes_sizes: see import_module.Importer.

A request to translate a file with a ModelNew (translation.py) has these instead of the last line:

module, parameters: the source of the task's module, and the names of the task's parameters.

The answer on standard output is a line of JSON, {"text", "data_bytes", "operators", "notes",
"checked"}, {"text", "notes", "data_bytes"} or {"error", "is_unreadable", "data_bytes"}, followed by
`data_bytes` bytes. A file is unreadable if it is not Python or does not define what it has to.
"""

import ctypes
import json
import os
import resource
import select
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 1, 22, 38, 2


class Program(ctypes.Structure):
    """The kernel's struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def confine(request, rules):
    """Confines this process and limits its memory and processor time.

    With `rules`, the bytes of a seccomp program, the process can open no file for writing, start no
    program and signal no process. Raises OSError if it cannot be confined.
    """
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (request["bytes"],) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (int(request["seconds"]), int(request["seconds"]) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if rules:
        code = ctypes.create_string_buffer(rules, len(rules))
        program = Program(len(rules) // 8, ctypes.addressof(code))
        if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
            PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
        ):
            raise OSError(ctypes.get_errno(), "cannot confine the module's process")


def import_one(request):
    """Returns the result of Importer.import_file or translate, or {"error": why there is none}."""
    from import_module import Importer
    from source_file import TOO_MUCH_MEMORY, Failure, Unreadable

    # The module may import files next to it; installed packages come first.
    sys.path.append(os.path.dirname(request["path"]))
    try:
        with open(request["path"], encoding="utf-8-sig") as f:
            source = f.read()
        if "module" in request:
            from translation import translate

            return translate(
                source, request["path"], request["module"], request["parameters"], request["name"]
            )
        return Importer(
            source,
            request["path"],
            request["name"],
            request["varies_constants"],
            is_relaxed=request["is_relaxed"],
            dtype=request["dtype"],
            fixes_sizes=request["fixes_sizes"],
        ).import_file()
    except Unreadable as failure:
        return {"error": str(failure), "is_unreadable": True}
    except Failure as failure:
        return {"error": str(failure)}
    except UnicodeDecodeError:
        return {"error": "it is not UTF-8"}
    except MemoryError:
        return {"error": f"it needs {TOO_MUCH_MEMORY}"}
    except OSError as error:
        return {"error": f"it cannot be read: {error.strerror}"}
    except RecursionError:
        return {"error": "its graph is nested too deeply"}


def child(request, rules, answer):
    """Imports one file in a forked process, writes the answer to a descriptor, and exits."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.closerange(3, answer)  # including the connection to `hone`
    os.closerange(answer + 1, 4096)
    confine(request, rules)
    try:
        result = import_one(request)
    except Exception as error:
        import source_file

        result = {"error": f"the import fails: {source_file.reason(error, request['path'])}"}
    data = result.pop("data", b"")
    result["data_bytes"] = len(data)
    with os.fdopen(answer, "wb") as out:
        out.write(json.dumps(result).encode() + b"\n" + data)
    os._exit(0)


def ended(status, seconds):
    """Returns how a process that gave no answer ended, in words; `status` is from waitpid."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number == signal.SIGXCPU:
            return f"it takes more than {seconds:g} s of processor time (--seconds)"
        return f"its process ended by signal {number} ({signal.strsignal(number)})"
    return f"its process ended with exit code {os.waitstatus_to_exitcode(status)}"


def serve_one(request, rules):
    """Imports one file in a forked process and returns the whole answer as bytes."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        try:
            child(request, rules, theirs)
        finally:
            os._exit(1)
    os.close(theirs)
    # The limit on processor time does not end a process that waits without computing.
    wall_seconds = 5 * request["seconds"] + 10
    deadline = time.monotonic() + wall_seconds
    late = False
    chunks = []
    while True:
        ready, _, _ = select.select([ours], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            late = True
            os.kill(pid, signal.SIGKILL)
            break
        chunk = os.read(ours, 1 << 20)
        if not chunk:
            break
        chunks.append(chunk)
    os.close(ours)
    _, status = os.waitpid(pid, 0)
    answer = b"".join(chunks)
    head, line, data = answer.partition(b"\n")
    try:
        if not late and line and json.loads(head)["data_bytes"] == len(data):
            return answer
    except (ValueError, KeyError, TypeError):
        pass
    reason = (
        f"it takes longer than {wall_seconds:g} s" if late else ended(status, request["seconds"])
    )
    return json.dumps({"error": reason, "data_bytes": 0}).encode() + b"\n"


def warm_up():
    """Loads torch and imports a small module, which loads its exporter and TorchScript.

    Starts no threads, so that the process can fork.
    """
    import torch

    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)
    torch.compiler.set_stance("force_eager")  # a file's own torch.compile would start a compiler
    torch.backends.mha.set_fastpath_enabled(False)
    torch._C._jit_set_profiling_executor(False)
    torch._C._jit_set_profiling_mode(False)
    torch._C._set_graph_executor_optimize(False)
    import import_module
    import recurrent
    import torch._decomp
    import torch.utils.cpp_extension  # which looks for CUDA's compiler when it is loaded

    recurrent.replace_rules()
    text = (
        "import torch\n"
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.l = torch.nn.Linear(4, 4)\n"
        "    def forward(self, x):\n"
        "        return self.l(x).relu()\n"
        "def get_inputs():\n"
        "    return [torch.rand(8, 4)]\n"
        "def get_init_inputs():\n"
        "    return []\n"
    )
    import_module.Importer(text, "warm_up", "warm_up").import_file()


def main():
    """Answers requests until standard input ends."""
    # Other output must not mix with the answers: descriptor 1 becomes standard error.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    os.set_inheritable(answers.fileno(), False)
    warm_up()
    answers.write(b'{"is_ready": true}\n')
    answers.flush()
    rules = b""
    for line in sys.stdin:
        request = json.loads(line)
        if "filter" in request:
            rules = bytes.fromhex(request["filter"])
            continue
        answers.write(serve_one(request, rules))
        answers.flush()


if __name__ == "__main__":
    main()
