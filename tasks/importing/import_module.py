"""Makes a task file of a module's file.

A task has a reference, inputs and parameters with the way they are drawn, and cases. The reference
is checked against the module before the task file is written.
"""

import contextlib
import re
import time
import warnings

import torch
from torch.export.graph_signature import InputKind

import agreement
import drawing
import reference
import task_text
from cost import MODEL_BYTES, RUN_BYTES
from source_file import Failure, SourceFile, bytes_of, reason, require_type, tensors_of

# Limit on the bytes of a task's data file.
DATA_BYTES = 64 << 20
# Limit on the seconds of a static export. After a slower one, dynamic sizes are not tried.
DYNAMIC_SECONDS = 8
SIZE_NAMES = ["N", "M", "K", "L", "P", "Q", "R", "S", "T", "U", "V", "W"]


class Importer:
    """Imports one file: runs it, traces its module, specifies the task and writes it.

    text, path: the file's source and its path. name: the task's name.
    varies_constants: if True, parameters that the file sets to one value are drawn near it.
    factor: the number by which the file's larger numbers are divided.

    The methods raise Failure if the file cannot be imported.
    """

    def __init__(self, text, path, name, varies_constants=False, factor=1):
        self.source, self.name, self.varies_constants = (
            SourceFile(text, path, factor),
            name,
            varies_constants,
        )
        self.notes = []
        self.generator = torch.Generator().manual_seed(2)

    def import_file(self):
        """Returns the result as a dict.

        text: the task file's text.
        data: the bytes of its data file, empty if it has none.
        operators: the kinds of operators that the reference calls.
        notes: differences from the file and warnings, in words.
        checked: the sizes at which reference and module were compared, in words.
        """
        self.gather()
        self.translate()
        self.specify()
        return self.write()

    def gather(self):
        """Makes the module and its inputs, and records how the file draws them.

        Both have real tensors on the CPU if they are small enough, else those of the recording,
        which are on the meta device where possible.
        """
        source = self.source
        with source.doing("making the inputs"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.inputs, self.input_record = source.recorded(source.inputs)
        with source.doing("making the Model"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model, self.model_record = source.recorded(source.model)
        self.drawn_model = self.model  # the recorded one; `model` may be replaced below
        self.input_tensors = self.recorded_inputs = tensors_of(self.inputs)
        if not self.input_tensors:
            raise Failure("get_inputs() gives no tensor")
        for tensor in self.input_tensors:
            if tensor.layout != torch.strided:
                raise Failure("an input is sparse, which tasks do not support")
            require_type("an input", tensor)
        weights = named_tensors(self.model).values()
        self.is_real = (
            bytes_of(weights) <= MODEL_BYTES and bytes_of(self.input_tensors) <= RUN_BYTES
        )
        if self.is_real:
            with source.doing("making the Model"):
                self.model = source.model("cpu")
            with source.doing("making the inputs"):
                self.inputs = source.inputs("cpu")
        self.inputs = torch.utils._pytree.tree_map_only(
            torch.Tensor, torch.Tensor.contiguous, self.inputs
        )
        self.input_tensors = tensors_of(self.inputs)

    def translate(self):
        """Traces the module and prints its graph, with dynamic sizes if the export has them."""
        began = time.monotonic()
        with self.source.doing("tracing the Model"):
            self.static = self.exported(self.model, self.inputs, None)
        self.program, self.sizes = self.static, {}
        self.reference = self.printed(self.static)
        if time.monotonic() - began > DYNAMIC_SECONDS:
            self.notes.append("dynamic sizes were not tried: tracing takes too long")
            return
        try:
            automatic = torch.utils._pytree.tree_map(
                lambda v: {
                    i: torch.export.Dim.AUTO for i, extent in enumerate(v.shape) if extent > 1
                }
                if isinstance(v, torch.Tensor)
                else None,
                tuple(self.inputs),
            )
            program = self.exported(self.model, self.inputs, automatic)
            sizes = self.named_sizes(program)
            if sizes:
                self.reference, self.program, self.sizes = self.printed(program), program, sizes
        except Exception:  # the static graph remains, whatever the error is
            return

    def exported(self, model, inputs, dynamic_shapes):
        """Returns the exported program of a module; other arguments are torch.export's."""
        with (
            warnings.catch_warnings(),
            drawing.AnyDevice() if "cuda" in self.source.text else contextlib.nullcontext(),
        ):
            warnings.simplefilter("ignore")
            try:
                return torch.export.export(
                    model, tuple(inputs), dynamic_shapes=dynamic_shapes, strict=False
                )
            except Exception as error:
                kind = type(error).__name__
                if "DataDependent" in kind or any(
                    sign in str(error)
                    for sign in ("data-dependent", "Could not guard", "FakeTensor")
                ):
                    line = re.match(r"line \d+", reason(error, self.source.path))
                    raise Failure(
                        "its control flow or shapes depend on the values of a tensor, "
                        "which a graph cannot express" + (f" ({line[0]})" if line else "")
                    ) from None
                raise

    def printed(self, program):
        """Returns the Reference of an exported program, and sets `constants`, by placeholder."""
        constants, inline = {}, set()
        named = named_tensors(self.model)
        for spec in program.graph_signature.input_specs:
            if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                constants[spec.arg.name] = named[spec.target]
            elif spec.kind == InputKind.CONSTANT_TENSOR:
                value = constants[spec.arg.name] = program.constants[spec.target]
                if value.device.type == "meta" and spec.target not in loose_tensors(
                    self.drawn_model
                ):
                    raise Failure(
                        "it holds tensors that are neither parameters nor buffers, and is too "
                        "large to be made here with real ones"
                    )
                if value.numel() == 1 and value.dim() == 0 and value.dtype in drawing.DTYPES:
                    inline.add(spec.arg.name)
            elif spec.kind != InputKind.USER_INPUT:
                raise Failure(f"its graph takes a {spec.kind.name.lower()}, which is no tensor")
        self.constants = constants
        try:
            return reference.Reference(program, constants, inline)
        except reference.Unprintable as error:
            raise Failure(str(error)) from None

    def named_sizes(self, program):
        """Returns a name for every symbol in the inputs' shapes.

        The result is empty if there are more symbols than names, or if an extent is neither a
        symbol nor a number.
        """
        names = {}
        for node in program.graph.nodes:
            value = node.meta.get("val")
            if node.op != "placeholder" or not isinstance(value, torch.Tensor):
                continue
            for extent in value.shape:
                if fixed(extent) is not None:
                    continue
                if not extent.node.expr.is_Symbol:
                    return {}
                if len(names) == len(SIZE_NAMES):
                    return {}
                names.setdefault(extent.node.expr, SIZE_NAMES[len(names)])
        return names

    def specify(self):
        """Specifies inputs and parameters: shapes, types and how they are drawn.

        Sets `input_specs`, `parameter_specs`, `timed` (the file's sizes by name) and `data` (the
        tensors of the data file by name).
        """
        placeholders = {n.name: n for n in self.program.graph.nodes if n.op == "placeholder"}
        self.timed = {}
        self.input_specs = []
        drawn_for = {}  # by draw, the first input that is made of it
        for (node, name), tensor, original in zip(
            self.reference.inputs.items(), self.input_tensors, self.recorded_inputs
        ):
            shape = placeholders[node].meta["val"].shape
            named = [fixed(e) if fixed(e) is not None else self.sizes[e.node.expr] for e in shape]
            self.timed |= {
                n: extent for n, extent in zip(named, tensor.shape) if isinstance(n, str)
            }
            if not original.is_contiguous():
                self.notes.append(
                    f"{name} is not contiguous in the file, but contiguous in the task"
                )
            draws = {
                id(leaf)
                for leaf in drawing.leaves_of(self.input_record.look_up(original), [])
                if leaf is not None
            }
            shared = sorted({drawn_for[draw] for draw in draws if draw in drawn_for})
            if shared:
                self.notes.append(
                    f"{name} is made of the same random numbers as {shared[0]} in the file, "
                    "but drawn independently in the task"
                )
            drawn_for = dict.fromkeys(draws, name) | drawn_for
            self.input_specs.append(
                {
                    "name": name,
                    "shape": named,
                    "dtype": tensor.dtype,
                    "init": self.init_of(name, original, tensor),
                }
            )
        for spec in self.input_specs:
            init, same = spec["init"], [n for n, v in self.timed.items() if v == spec["init"].b]
            if (
                init.of == "integers"
                and len(same) == 1
                and same[0] not in spec["shape"][:1]
                and init.a == 0
            ):
                init.b = same[0]
        self.data = {}
        self.targets = {s.arg.name: s.target for s in self.program.graph_signature.input_specs}
        self.drawn = loose_tensors(self.drawn_model) | named_tensors(self.drawn_model)
        self.parameter_specs = [
            self.parameter_spec(node, name) for node, name in self.reference.parameters.items()
        ]
        if bytes_of(self.data.values()) > DATA_BYTES:
            raise Failure(
                f"its constants take {bytes_of(self.data.values()) >> 20} MiB, more than the "
                f"{DATA_BYTES >> 20} MiB that a task may carry"
            )

    def init_of(self, name, recorded, tensor):
        """Returns the Init of an input: as recorded, else as measured, else a default one."""
        init = drawing.init_from(self.input_record.look_up(recorded), tensor.dtype)
        if init is not None and not self.is_drawable(init, tensor):
            init = None
        if init is None and tensor.device.type == "meta":
            self.notes.append(
                f"{name}: how it is drawn cannot be followed, and it is too large to be measured; "
                "a default is declared"
            )
            return (
                drawing.Init("coin" if tensor.dtype == torch.bool else "normal")
                if not is_integer(tensor.dtype)
                else drawing.Init("integers", 0, 2)
            )
        if init is None:
            init = self.measured(name, tensor)
        return init

    def is_drawable(self, init, tensor):
        """Returns True if an Init can draw a tensor of this shape.

        Extents above 64 are tried as 64, unless the expression has numbers that may be sizes.
        """
        if not init.expr:
            return True
        try:
            # Whole numbers of two digits or more may be sizes; 0.001 and float32 are none.
            names_sizes = (
                re.search(r"(?<![\w.])\d\d+(?![\w.])", init.expr) and "size" not in init.expr
            )
            small = [extent if names_sizes else min(extent, 64) for extent in tensor.shape]
            init.draw(small, tensor.dtype, {}, self.generator)
            return True
        except Exception:
            return False

    def measured(self, name, tensor):
        """Returns the Init that fits a tensor's values, and adds a note that it was measured."""
        try:
            init = drawing.measured(tensor)
        except reference.Unprintable as error:
            raise Failure(f"{name}: {error}") from None
        if init.of != "constant":
            self.notes.append(
                f"{name}: how it is drawn cannot be followed; measured as "
                f"{init.text().strip(chr(34)) or 'a fair coin'}"
            )
        return init

    def parameter_spec(self, node, name):
        """Returns a parameter's name, shape, type, and its Init or its data file.

        Values that are neither random nor all equal go into the data file.
        """
        tensor = self.constants[node]
        require_type(name, tensor)
        spec = {"name": name, "shape": list(tensor.shape), "dtype": tensor.dtype}
        recorded = self.drawn.get(self.targets[node])
        init = (
            None
            if recorded is None
            else drawing.init_from(self.model_record.look_up(recorded), tensor.dtype)
        )
        is_deterministic = init is not None and init.of == "constant"
        if is_deterministic and not init.expr:
            is_learned = isinstance(tensor, torch.nn.Parameter) or self.targets[node].endswith(
                ("running_mean", "running_var")
            )
            return spec | {
                "init": self.near(name, init)
                if is_learned and tensor.dtype.is_floating_point
                else init
            }
        is_exact = (
            is_deterministic
            or is_integer(tensor.dtype)
            or (init is None and not isinstance(tensor, torch.nn.Parameter))
        )
        if is_exact and tensor.device.type != "meta":
            first = tensor.reshape(-1)[:1]
            if tensor.numel() and bool((tensor == first).all()):
                return spec | {"init": drawing.Init("constant", float(first.item()))}
            self.data[name] = tensor
            return spec | {"data": self.name + ".safetensors"}
        if init is not None and self.is_drawable(init, tensor):
            return spec | {"init": init}
        if tensor.device.type == "meta":
            raise Failure(
                f"{name}: how it is initialised cannot be followed, and it is too large to be made "
                "here"
            )
        return spec | {"init": self.measured(name, tensor)}

    def near(self, name, constant):
        """Returns the Init of a learned parameter that the file sets to one value.

        Training would change that value; until then, a program could leave the parameter out
        (doc/decisions/011).
        """
        said = "the file sets to one value"
        if not any(said in note for note in self.notes):
            self.notes.append(
                f"parameters that {said} ({name}, ...) "
                + (
                    "are drawn near it"
                    if self.varies_constants
                    else "keep it: a program may leave them out (--vary-constants draws them "
                    "near it)"
                )
            )
        if not self.varies_constants:
            return constant
        return (
            drawing.Init("uniform", constant.a / 2, constant.a * 1.5)
            if constant.a > 0
            else drawing.Init("normal", constant.a, 0.1)
        )

    def write(self):
        """Checks the reference and returns the result of `import_file`."""
        check = agreement.Check(self)
        check.run()
        self.notes += self.reference.left_out
        cases = [
            {
                "sizes": self.timed,
                "timed": True,
                "on": ["cuda"] if check.is_too_large_for_cpu else [],
            }
        ]
        for sizes, is_timed in check.cases:
            if check.fits_cpu(sizes):
                cases.append({"sizes": sizes, "timed": is_timed, "on": ["cpu"] if is_timed else []})
            elif not is_timed:
                cases.append({"sizes": sizes, "timed": False, "on": ["cuda"]})
        text = task_text.task_text(
            self.name,
            self.summary(),
            self.text,
            self.input_specs,
            self.parameter_specs,
            cases,
            check.distributions,
            self.source.text,
        )
        return {
            "text": text,
            "data": task_text.safetensors(self.data) if self.data else b"",
            "operators": check.operators,
            "notes": self.notes,
            "checked": check.checked,
        }

    def summary(self):
        """Returns the first sentence of Model's docstring, or the task's name in words."""
        document = (self.source.names["Model"].__doc__ or "").strip()
        first = re.split(r"(?<=[.!?])\s|\n\s*\n", document, maxsplit=1)[0]
        first = re.sub(r"\s+", " ", first).strip().rstrip(".")
        return (
            first[:160]
            if first and first != (torch.nn.Module.__doc__ or "")[:20]
            else self.name.replace("_", " ")
        )


def fixed(extent):
    """Returns an extent as a number, or None if it is symbolic."""
    if isinstance(extent, int):
        return extent
    return int(extent.node.expr) if extent.node.expr.is_number else None


def named_tensors(model):
    """Returns a module's parameters and buffers by name."""
    return dict(model.named_parameters(remove_duplicate=False)) | dict(
        model.named_buffers(remove_duplicate=False)
    )


def loose_tensors(model):
    """Returns the tensors that are plain attributes of modules, by their names in a graph."""
    return {
        ".".join(filter(None, (path, name))): v
        for path, m in model.named_modules()
        for name, v in vars(m).items()
        if isinstance(v, torch.Tensor)
    }


def is_integer(dtype):
    """Returns True for the integer types of tasks and bool."""
    return dtype in (torch.int32, torch.int64, torch.bool)
