"""Translates a ModelNew that consists of PyTorch's operators into a variant document.

The parameters of ModelNew are matched with those of the task by value: both modules are made from
one seed. What its constructor computes of them goes into `prepare`.
"""

import re

import torch
from call_recording import Call, Record
from candidate_file import CandidateFile
from expression_printer import ExpressionPrinter
from import_module import Importer
from init_expression import RecordedExpression
from module_tensors import loose_tensors, named_tensors
from recorded_draws import constant_of, is_draw, is_passed_on, replaces
from source_file import Failure, SourceFile, Unreadable, tensors_of
from task_dtypes import DTYPES
from torch._subclasses.fake_tensor import FakeTensor
from torchscript_text import Unprintable, compile_source, number, result_type

# Numbers of a tensor whose origin is unknown that are written into a document.
MAX_NUMBERS = 64
ROUGHLY = 0.01  # relative error up to which outputs agree


class Translated(Importer):
    """The graph of one file's module, and its tensors with their values.

    values: the tensors by the names of the graph's placeholders. tensors: all tensors by the names
    that the module has for them. record: the Record of what made them, with real tensors.

    is_warm: if True, the graph is that of the second call, so that what the first call computes of
    the parameters, and keeps, counts as a part of the module.
    """

    def __init__(self, source, is_warm=False):
        self.source, self.name, self.varies_constants = source, "module", False
        self.is_relaxed, self.dtype, self.is_widened, self.notes = False, "", False, []
        self.fixes_sizes = False
        self.generator = torch.Generator().manual_seed(2)
        self.record = RecordWithValues()
        self.gather()
        if is_warm and not self.is_real:
            raise Failure("its first call is too large to be made here")
        with source.doing("making the module"), self.record, torch.no_grad():
            real = source.model("cpu")
            if is_warm:
                real(*torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, self.inputs))
        if is_warm:
            self.model = real
        self.translate()
        self.tensors = tensors = loose_tensors(real) | named_tensors(real)
        targets = {s.arg.name: s.target for s in self.program.graph_signature.input_specs}
        self.values = {}
        for node, name in self.reference.parameters.items():
            value = tensors.get(targets[node], self.constants[node])
            if value.device.type == "meta" or isinstance(value, FakeTensor):
                raise Failure(f"{name} is a tensor that forward() makes in one call and keeps")
            self.values[node] = value.detach()


class RecordWithValues(Record):
    """A Record that keeps the tensor of each call.

    tensors: by Call, in the order of the calls.
    """

    def __init__(self):
        super().__init__()
        self.tensors = {}
        self.written_at = {}  # by storage, the number of calls before the last write to it
        self.number_of = {}

    def remember(self, func, known, output, position, is_one_of_several):
        super().remember(func, known, output, position, is_one_of_several)
        call = self.look_up(output)
        if call is None:
            return
        self.number_of[call] = len(self.tensors)
        self.tensors[call] = output
        if func._schema.is_mutable:
            self.written_at[self.place_of(output)[0]] = self.number_of[call]

    def value_of(self, call):
        """Returns the values that a call gave a tensor, or None if they were overwritten."""
        tensor = self.tensors[call]
        written_at = self.written_at.get(self.place_of(tensor)[0], -1)
        return tensor.detach() if written_at <= self.number_of[call] else None


def same(a, b):
    """Returns True if two tensors have equal bits."""
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def plain(target):
    """Returns a tensor's name with underscores: "conv_weight" for "conv.weight"."""
    return re.sub(r"\W", "_", target)


class Matching:
    """Expressions of a candidate's tensors over the parameters of a task.

    The parameters that a constructor draws are found by their values. Those that it sets to one
    number, such as the statistics of a batch normalization, are found by their names or, of tensors
    of one shape and number, by the order in which they are made.

    parameters: the task's parameters by name.
    """

    def __init__(self, task, candidate):
        self.candidate, self.record = candidate, candidate.record
        self.parameters = dict(zip(task.reference.parameters.values(), task.values.values()))
        self.targets = {s.arg.name: s.target for s in candidate.program.graph_signature.input_specs}
        self.known = {}  # the names of parameters by the Calls that made tensors for them
        self.printed = RecordedExpression(None, "", (), self.varies)
        self.printed.show = self.show
        self.printed.printer = ExpressionPrinter(self.show, lambda call: len(call.shape))
        self.used = set()  # the parameters that the expression being printed has
        self.find_constants(task)

    def find_constants(self, task):
        """Fills `known` with the tensors that stand for parameters that are set to one number."""
        left = {}  # by shape and number: the names of the task's parameters, in order
        calls = {name: task.record.look_up(value) for name, value in self.parameters.items()}
        order = task.record.number_of
        for name in sorted(self.parameters, key=lambda n: order.get(calls[n], -1)):
            level = constant_of(calls[name])
            if level is not None:
                left.setdefault((calls[name].shape, level), []).append(name)
        unnamed = []
        named = {plain(target): t for target, t in self.candidate.tensors.items()}
        of_call = {self.record.look_up(t): name for name, t in named.items()}
        for call in self.record.tensors:
            level = constant_of(call)
            names = left.get((call.shape, level), [])
            if level is None or self.record.value_of(call) is None or is_passed_on(call):
                continue
            if of_call.get(call) in names:
                self.known[call] = of_call[call]
                names.remove(of_call[call])
            elif names:
                unnamed.append((call, names))
        for call, names in unnamed:
            if names:
                self.known[call] = names.pop(0)

    def varies(self, call):
        """Returns True if a Call depends on a parameter."""
        if call in self.known or is_draw(call):
            return True
        arguments = torch.utils._pytree.tree_leaves(
            (call.args, call.kwargs), is_leaf=lambda v: isinstance(v, Call)
        )
        kept = arguments[1:] if replaces(call) else arguments
        return any(self.varies(a) for a in kept if isinstance(a, Call))

    def plain_name(self, node):
        """Returns the name of a placeholder's tensor as the task's parameters are called."""
        return plain(self.targets[node] or node)

    def expression(self, node, name, value):
        """Returns a tensor as an expression. Raises Failure if it does not follow from the task's
        parameters."""
        call = self.record.look_up(value)
        known = self.parameter_like(value)
        if call is None:
            return known or self.numbers(value, name)
        self.used = set()
        try:
            text = self.text_of(call)
            return known if self.used == {known} else text
        except (Unprintable, AttributeError) as error:
            if known is not None:
                return known
            raise Failure(
                f"{name} has other values than any parameter of the task's module made from the "
                f"same seed, and does not follow from them ({error})"
            ) from None

    def parameter_like(self, value):
        """Returns the name of the task's parameter that has these values and no others, or None."""
        if value is None or value.numel() < 2:
            return None
        if bool((value == value.flatten()[0]).all()):
            return None
        return next((n for n, other in self.parameters.items() if same(value, other)), None)

    def text_of(self, call):
        if call in self.known:
            self.used.add(self.known[call])
            return self.known[call]
        drawn = self.parameter_like(self.record.value_of(call)) if is_draw(call) else None
        if drawn is not None:
            self.used.add(drawn)
            return drawn
        if is_draw(call):
            raise Unprintable("it is drawn at random, otherwise than the module draws")
        if self.has_unknown_argument(call):
            raise Unprintable("it is made of an input, or of a tensor of unknown origin")
        return self.printed.text_of(call)

    @staticmethod
    def has_unknown_argument(call):
        """Returns True if the constructor did not make a tensor among the arguments of a call."""
        return not replaces(call) and any(
            given is None and str(argument.type) == "Tensor"
            for argument, given in zip(call.target._schema.arguments, call.args)
        )

    def show(self, value):
        """Returns a Call as printed, or None for any other value; see `literal`."""
        return self.text_of(value) if isinstance(value, Call) else None

    @staticmethod
    def numbers(value, name):
        """Returns a tensor as the numbers that it holds. Raises Failure if these are many."""
        if value.numel() > MAX_NUMBERS or value.dtype not in DTYPES:
            raise Failure(f"{name} is a constant of {value.numel()} numbers of unknown origin")
        flat = ", ".join(number(v) for v in value.flatten().tolist())
        kind = "float32" if value.is_floating_point() else "int64"
        text = f"torch.tensor([{flat}], dtype=torch.{kind}).reshape({list(value.shape)})"
        return text if value.dtype == getattr(torch, kind) else f"{text}.to({value.dtype})"


def settings_of(uses):
    """Returns the settings that a file has made in PyTorch, as lines of TOML."""
    backends = torch.backends
    matmul = backends.cuda.matmul.allow_tf32 or torch.get_float32_matmul_precision() != "highest"
    chosen = {
        "tf32": matmul,
        "cudnn_benchmark": backends.cudnn.benchmark,
        "cuda_graph": uses.graph_line is not None,
    }
    return "".join(f"{name} = true\n" for name, is_set in sorted(chosen.items()) if is_set)


class Translation:
    """A document of a candidate, for the parameters of a task.

    text: the document. notes: what the document does otherwise than the file, in words.
    """

    def __init__(self, task, candidate, title):
        self.task, self.candidate = task, candidate
        if len(candidate.reference.inputs) != len(task.reference.inputs):
            raise Failure("it does not use all inputs of the task's module")
        if len(candidate.reference.outputs) != len(task.reference.outputs):
            raise Failure(
                f"it returns {len(candidate.reference.outputs)} tensors, and the task's module "
                f"{len(task.reference.outputs)}"
            )
        self.notes = list(candidate.reference.left_out)
        self.expressions = self.matched()
        self.program = self.host_program()
        try:
            self.unit, _ = compile_source(self.program)
        except Exception as error:
            message = re.sub(r"\s+", " ", str(error)).strip()
            raise Failure(f"its graph does not compile as TorchScript: {message[:300]}") from None
        uses = candidate.source.uses
        if uses.extensions:
            self.notes.append(
                "an extension that cannot be built is left out, and the file's own fallback taken"
            )
        if uses.graph_line is not None:
            self.notes.append(
                "its CUDA graph became the setting cuda_graph, which records the whole program"
            )
        if not candidate.sizes and task.sizes:
            self.notes.append(
                "its graph holds for the file's sizes alone; at other sizes the program may fail"
            )
        settings = settings_of(uses)
        self.text = (
            f"## Performance Analysis\nTranslated from {title}.\n## Code Implementation\n"
            + (f"```toml\n{settings}```\n" if settings else "")
            + f"```python\n{self.program}```\n"
        )

    def matched(self):
        """Returns the candidate's tensors as expressions over the task's parameters, by name."""
        matching = Matching(self.task, self.candidate)
        reference, values = self.candidate.reference, self.candidate.values
        try:
            return {
                name: matching.expression(node, name, values[node])
                for node, name in reference.parameters.items()
            }
        except Failure:
            own = {matching.plain_name(node): node for node in reference.parameters}
            others = matching.parameters
            if own.keys() != others.keys() or any(
                values[node].shape != others[name].shape for name, node in own.items()
            ):
                raise
        self.notes.append(
            "its parameters have the names and shapes of the module's, and are taken for these, "
            "although its constructor draws them otherwise"
        )
        return {name: matching.plain_name(node) for node, name in reference.parameters.items()}

    def agrees(self):
        """Returns True if the program and the task's module agree roughly for other inputs."""
        inputs = tensors_of(self.task.source.inputs("cpu", seed=7))
        parameters = list(self.task.values.values())
        with torch.no_grad():
            expected = tensors_of(self.task.source.model("cpu")(*inputs))
            if hasattr(self.unit, "prepare"):
                made = self.unit.prepare(*parameters)
                parameters = list(made) if isinstance(made, tuple) else [made]
            found = tensors_of(self.unit.forward(*[t.clone() for t in inputs], *parameters))
        return all(
            a.shape == b.shape and float((a - b).norm()) <= ROUGHLY * float(b.norm())
            for a, b in zip(found, expected)
        )

    def host_program(self):
        """Returns the source of `forward`, with `prepare` if it needs more than the parameters."""
        given = list(self.task.reference.parameters.values())
        reference = self.candidate.reference
        taken = list(self.expressions)
        body = list(reference.lines)
        prepare = ""
        if given and taken != [] and list(self.expressions.values()) != given:
            made = ", ".join(self.expressions.values())
            arguments = ", ".join(f"{n}: Tensor" for n in given)
            prepare = f"def prepare({arguments}) -> {result_type(taken)}:\n    return {made}\n\n"
        elif not given:  # nothing to prepare: constants are made in each call
            body = [f"{name} = {text}" for name, text in self.expressions.items()] + body
            taken = []
        elif not taken:
            taken = given
        arguments = ", ".join(f"{n}: Tensor" for n in [*reference.inputs.values(), *taken])
        kind = result_type(reference.outputs)
        lines = "".join(f"    {line}\n" for line in body)
        result = ", ".join(reference.outputs)
        return f"{prepare}def forward({arguments}) -> {kind}:\n{lines}    return {result}\n"


def notes_on_times(text):
    """Returns a note if a file takes times: its choices by them were made here, without a GPU."""
    for place, line in enumerate(text.splitlines(), 1):
        if re.search(r"\b(elapsed_time|perf_counter|time\.time)\(", line):
            return [f"line {place} takes times, and what it chooses by them may differ on a GPU"]
    return []


def translate(text, path, module_text, parameters, title):
    """Returns {"text": the document, "notes": notes} of a file with a ModelNew.

    module_text: the source of the task's module. parameters: the names of the task's parameters, in
    order. title: how the document names the file. Raises Failure if the file cannot be translated.
    """
    task = Translated(SourceFile(module_text, "the task's module"))
    if list(task.reference.parameters.values()) != parameters:
        raise Failure(
            "the task's parameters are not those of its module: it was edited, or imported with "
            "other options"
        )
    reasons = []
    for is_pretended in (True, False):
        try:
            source = CandidateFile(text, path, task.source, is_pretended)
        except Unreadable:
            raise
        except Failure as failure:
            reasons.append(str(failure))
            continue
        for is_warm in (False, True):
            try:
                with source.without_gpu(), torch.no_grad():
                    candidate = Translated(source, is_warm)
                source.require_operators()
                made = Translation(task, candidate, title)
                if is_warm and not made.agrees():
                    raise Failure("what its first call keeps depends on the inputs")
                return {"text": made.text, "notes": made.notes + notes_on_times(text)}
            except Failure as failure:
                reasons.append(str(failure))
                source.require_operators()
    raise Failure(reasons[0])
