"""Task files as Python objects: the reference, the tensors and the cases of a task."""

import re
import tomllib

import torch
from safetensors_files import read_safetensors
from task_initializer import Init

ALL_DISTRIBUTIONS = ["declared", "shifted", "small", "outliers", "mixed", "sparse", "weights"]


class Tensor:
    """An input or a parameter of a task.

    data_file: holds the values of a parameter, under its name, or is None.
    """

    def __init__(self, table, is_parameter, folder):
        self.name = table["name"]
        self.shape = table["shape"]
        self.dtype = getattr(torch, table.get("dtype", "float32"))
        self.is_parameter = is_parameter
        self.is_fixed = table.get("fixed", False)
        self.init = init_of(table.get("init"), self.dtype)
        self.data_file = folder / table["data"] if "data" in table else None

    @property
    def is_float(self):
        return self.dtype.is_floating_point

    @property
    def is_constant(self):
        """Whether every round has the same values."""
        return self.init.of == "constant" or self.data_file is not None

    def data(self):
        return read_safetensors(self.data_file)[self.name]

    def shape_in(self, sizes):
        return [sizes[s] if isinstance(s, str) else s for s in self.shape]


def init_of(value, dtype):
    """Returns the Init that the `init` of a task file describes."""
    if value is None:
        return Init("coin" if dtype == torch.bool else "normal")
    expr = value.get("expr", "") if isinstance(value, dict) else ""
    text = value["of"] if isinstance(value, dict) else value
    name, arguments = re.fullmatch(r"\s*(\w+)\s*(?:\((.*)\))?\s*", text).groups()
    a, b = 0.0, 1.0
    if arguments:
        numbers = [read_number(n.strip()) for n in arguments.split(",")]
        a, b = numbers if len(numbers) == 2 else (numbers[0], b)
    return Init(name, a, b, expr)


def read_number(text):
    try:
        return float(text)
    except ValueError:
        return text


class Task:
    """cases: sizes by name, one dict for each case. timed: which of the cases are timed.

    A case for one kind of device only is dropped if `device` names another kind.
    """

    def __init__(self, path, device=None):
        table = tomllib.loads(path.read_text())
        self.path, self.name = path, table["name"]
        self.reference = table["reference"].strip() + "\n"
        self.tensors = [Tensor(t, False, path.parent) for t in table.get("input", [])]
        self.tensors += [Tensor(t, True, path.parent) for t in table.get("parameter", [])]
        cases = [c for c in table["case"] if device is None or device in c.get("on", [device])]
        self.cases = [c.get("sizes", {}) for c in cases]
        self.timed = [c.get("timed", False) for c in cases]
        self.distributions = table.get("distributions", ALL_DISTRIBUTIONS)

    def elements(self, sizes):
        """Returns the number of elements of all tensors in a case."""
        return sum(torch.Size(t.shape_in(sizes)).numel() for t in self.tensors)


def find_tasks(folder, device=None):
    """Returns the tasks of a folder's task files, by name."""
    paths = [folder] if folder.is_file() else sorted(folder.rglob("*.toml"))
    tasks = [Task(path, device) for path in paths]
    return dict(sorted((task.name, task) for task in tasks))
