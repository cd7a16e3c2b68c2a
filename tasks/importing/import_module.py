"""Makes a task file of a module's file.

A task has a reference, inputs and parameters with the way they are drawn, and cases. The reference
is checked against the module before the task file is written.
"""

import functools
import re
import time
import warnings

import task_text
import torch
from agreement import Check
from any_device import AnyDevice, data_as_detached
from cost import MODEL_BYTES, RUN_BYTES
from draw_check import are_equal
from drawn_inside import draws_of, may_draw_inside
from equal_parameters import one_for_equals
from export_failures import failure_of
from file_samples import FileSamples
from forward_arguments import require_inputs
from graph_sizes import named_sizes
from memory_contents import filled_memory
from module_tensors import loose_tensors, made_in_forward, name_in, named_tensors
from recorded_draws import leaves_of
from reference import Reference
from source_file import Failure, SourceFile, bytes_of, tensors_of
from task_dtypes import DTYPES
from task_specification import Specification
from torch.export.graph_signature import InputKind
from torchscript_text import Unprintable

# Processor seconds of a static export beyond which dynamic sizes are not tried.
DYNAMIC_SECONDS = 8
MAY_LEAVE_UNWRITTEN = re.compile(r"empty|Tensor\(")


class Importer:
    """Imports one file: runs it, traces its module, specifies the task and writes it.

    text, path: the file's source and its path. name: the task's name.
    varies_constants: if True, parameters that the file sets to one value are drawn near it.
    factor: the number by which the file's larger numbers are divided.
    is_relaxed: if True, the task admits TF32.
    dtype: the name of the type to which floating-point parameters and inputs are cast; "": none.
    fixes_sizes: if True, the task has the file's sizes and no others.

    The methods raise Failure if the file cannot be imported.
    """

    def __init__(
        self,
        text,
        path,
        name,
        varies_constants=False,
        factor=1,
        is_relaxed=False,
        dtype="",
        fixes_sizes=False,
    ):
        self.source, self.name, self.varies_constants = (
            SourceFile(text, path, factor),
            name,
            varies_constants,
        )
        self.is_relaxed, self.dtype, self.fixes_sizes = is_relaxed, dtype, fixes_sizes
        self.is_widened = False  # whether the task's `dtype` is checked in float32
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
        if may_draw_inside(source.text):
            self.find_draws()
        with source.doing("making the inputs"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.inputs, self.input_record = source.recorded(source.inputs)
        with source.doing("making the Model"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model, self.model_record = source.recorded(source.model)
        self.drawn_model = self.model  # the recorded one; `model` may be replaced below
        self.input_tensors = self.recorded_inputs = tensors_of(self.inputs)
        require_inputs(self.inputs)
        weights = named_tensors(self.model).values()
        if any(tensor.layout != torch.strided for tensor in weights):
            raise Failure("a parameter or buffer is sparse, which tasks do not support")
        if any(isinstance(part, torch.jit.ScriptModule) for part in self.model.modules()):
            raise Failure("it has a scripted part, which is not traced; leave out torch.jit.script")
        self.is_real = (
            bytes_of(weights) <= MODEL_BYTES and bytes_of(self.input_tensors) <= RUN_BYTES
        )
        self.samples = FileSamples(self)
        self.samples.require_same_numbers()
        if self.is_real:
            self.make_real()
            with source.doing("making the inputs"):
                self.inputs = source.inputs("cpu")
            if MAY_LEAVE_UNWRITTEN.search(source.text):
                self.require_written()
        elif self.dtype:  # the recorded module itself keeps its types
            on_meta = any(t.is_meta for t in named_tensors(self.drawn_model).values())
            self.model = source.model("meta" if on_meta else "cpu")
            self.cast_model(getattr(torch, self.dtype))
        if self.dtype:  # how the inputs are drawn stays as recorded
            self.inputs = torch.utils._pytree.tree_map_only(torch.Tensor, self.as_task, self.inputs)
        self.inputs = torch.utils._pytree.tree_map_only(
            torch.Tensor, torch.Tensor.contiguous, self.inputs
        )
        self.input_tensors = tensors_of(self.inputs)

    def require_written(self):
        """Raises Failure if a part of a parameter, buffer or input holds what was in its memory."""
        with filled_memory(), self.source.doing("making the Model and its inputs"):
            filled = named_tensors(self.source.model("cpu")) | {
                f"input {i + 1}": t for i, t in enumerate(tensors_of(self.source.inputs("cpu")))
            }
        for name, tensor in filled.items():
            unwritten = tensor.isnan() if tensor.is_floating_point() else tensor.new_zeros(1)
            if bool(unwritten.any()):
                where = "its" if bool(unwritten.all()) else "a part of its"
                raise Failure(f"{name}: nothing is written to {where} memory (torch.empty)")

    def find_draws(self):
        """Finds out what forward() draws, and makes inputs of it."""
        source = self.source
        for device in ("meta", "cpu"):  # not every operator has a form for the meta device
            try:
                with source.doing("running the Model"), warnings.catch_warnings(), AnyDevice():
                    warnings.simplefilter("ignore")
                    inputs = source.inputs(device)
                    draws, seeds = draws_of(source.model(device), inputs, source.path)
                break
            except Failure:
                if device == "cpu":
                    raise
        if draws and seeds:
            raise Failure(
                f"line {seeds[0]}: forward() seeds the random numbers that it draws, so they are "
                "the same in each call, and a task would draw them anew; make them once in "
                "__init__, as a buffer (register_buffer)"
            )
        source.draws, source.own_inputs = draws, len(inputs)
        if source.draws:
            self.notes.append("random numbers that forward() draws are inputs of the task")

    def cast_model(self, dtype):
        """Casts the module in place: its functions may hold references to its parts."""
        with self.source.doing(f"casting the Model to {self.dtype}"):
            self.model.to(dtype)
            for part in self.model.modules():
                for name, value in list(vars(part).items()):
                    if isinstance(value, torch.Tensor) and value.is_floating_point():
                        setattr(part, name, value.to(dtype))

    def as_task(self, tensor):
        """Returns a tensor in the type that the task gives it."""
        return tensor.to(getattr(torch, self.dtype)) if tensor.is_floating_point() else tensor

    def make_real(self):
        """Makes the module with real tensors on the CPU, in the task's types."""
        with self.source.doing("making the Model"):
            self.model = self.source.model("cpu")
        if self.dtype:
            self.cast_model(getattr(torch, self.dtype))

    def widen(self):
        """Lets module and reference be compared in float32, with the values of the task's type."""
        self.is_widened = True
        self.cast_model(torch.float32)
        self.constants = {node: self.as_checked(value) for node, value in self.constants.items()}
        self.notes.append(
            f"checked in float32, because PyTorch lacks an operator for {self.dtype} on CPUs"
        )

    def as_checked(self, tensor):
        """Returns a tensor in the type in which module and reference are compared."""
        return tensor.float() if self.is_widened and tensor.is_floating_point() else tensor

    def translate(self):
        """Traces the module and prints its graph, with dynamic sizes if the export has them."""
        began = time.process_time()
        with self.source.doing("tracing the Model"):
            self.static = self.exported(self.model, self.inputs, None)
        self.program, self.sizes = self.static, {}
        self.reference = self.printed(self.static)
        if self.fixes_sizes:
            return
        if time.process_time() - began > DYNAMIC_SECONDS:
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
            sizes = named_sizes(program)
            if sizes:
                self.reference, self.program, self.sizes = self.printed(program), program, sizes
        except Exception:  # the static graph remains, whatever the error is
            return

    def exported(self, model, inputs, dynamic_shapes):
        """Returns the exported program of a module; other arguments are torch.export's."""
        with warnings.catch_warnings(), AnyDevice(), data_as_detached():
            warnings.simplefilter("ignore")
            try:
                return torch.export.export(
                    model, tuple(inputs), dynamic_shapes=dynamic_shapes, strict=False
                )
            except Exception as error:
                failure = failure_of(error, self.source)
                if failure is not None:
                    raise failure from None
                raise

    def printed(self, program):
        """Returns the Reference of an exported program, and sets `constants`, by placeholder."""
        constants, inline, names = {}, set(), {}
        named, loose = named_tensors(self.model), loose_tensors(self.model)
        for spec in program.graph_signature.input_specs:
            if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER):
                constants[spec.arg.name] = named[spec.target]
            elif spec.kind == InputKind.CONSTANT_TENSOR:
                value = constants[spec.arg.name] = program.constants[spec.target]
                # Tensors that forward() reaches through a list or a dict are constants here.
                for held in (named, loose):
                    found = name_in(held, value)
                    if found is not None:
                        spec.target = found
                        program.constants[found] = constants[spec.arg.name] = held[found]
                        break
                is_loose = spec.target not in named
                if is_loose and value.is_meta and spec.target not in self.calls:
                    raise Failure(
                        "it holds tensors that are neither parameters nor buffers, and is too "
                        "large to be made here with real ones"
                    )
                is_number = is_loose and value.dim() == 0 and value.dtype in DTYPES
                if is_number and not self.is_drawn(spec.target):
                    inline.add(spec.arg.name)
            elif spec.kind != InputKind.USER_INPUT:
                raise Failure(f"its graph takes a {spec.kind.name.lower()}, which is no tensor")
            names[spec.arg.name] = spec.target
        self.constants = constants
        self.made_in_forward = made_in_forward(program)
        calls = {node: self.calls.get(names[node]) for node in constants}
        same = one_for_equals(constants, calls, names)
        self.equal_tensors = [
            (next(names[n] for n, t in constants.items() if t is same[node]), names[node])
            for node in constants
            if same[node] is not constants[node]
        ]
        try:
            return Reference(program, same, inline)
        except Unprintable as error:
            raise Failure(str(error)) from None

    @functools.cached_property
    def calls(self):
        """The recorded Calls that made the module's tensors, or None, by name."""
        held = loose_tensors(self.drawn_model) | named_tensors(self.drawn_model)
        return {name: self.model_record.look_up(tensor) for name, tensor in held.items()}

    def is_drawn(self, name):
        """Returns whether a tensor that the module has not registered is drawn at random."""
        if name not in self.calls:
            return False
        samples = self.samples.of_parameter(name)
        if samples:
            return not are_equal(samples)
        return bool(leaves_of(self.calls[name], [], with_scalars=True))

    def specify(self):
        """Specifies the task's inputs and parameters."""
        self.specification = Specification(self)

    def write(self):
        """Checks the reference and returns the result of `import_file`."""
        check = Check(self)
        check.run()
        self.notes = list(dict.fromkeys(self.notes + self.reference.left_out))
        cases = [
            {
                "sizes": self.specification.timed,
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
            check.compiled.text,
            self.specification.inputs,
            self.specification.parameters,
            cases,
            check.has_result,
            self.source.text,
            self.is_relaxed,
        )
        data = self.specification.data
        return {
            "text": text,
            "data": task_text.safetensors(data) if data else b"",
            "operators": check.compiled.operators,
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
