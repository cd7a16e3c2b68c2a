"""Specifies the inputs and parameters of a task."""

import torch
from distinct_numbers import are_distinct
from draw_check import NOT_FOLLOWED, are_equal, lost_in_draws, require_same_draws
from drawing import init_from
from drawn_structure import SAME_VALUES, structure_of
from exact_values import exact_constant, is_drawn_exactly
from graph_sizes import fixed
from module_tensors import line_of, loose_tensors, named_tensors
from recorded_draws import is_unwritten, leaves_of
from separate_memory import require_separate_memory
from source_file import Failure, bytes_of, require_type
from task_dtypes import is_integer
from task_initializer import Init, is_drawable, measured_init
from torchscript_text import Unprintable

# Limit on the bytes of a task's data file.
DATA_BYTES = 64 << 20


class Specification:
    """The inputs and parameters of a task: shapes, types and how they are drawn.

    inputs, parameters: the tensors as task_text.tensor_text takes them, in order.
    timed: the file's sizes by name.
    data: the tensors of the data file by name.

    The constructor specifies the tensors of a translated `Importer` and adds to its notes. It
    raises Failure if a task cannot declare them.
    """

    def __init__(self, importer):
        self.importer = importer
        self.inputs, self.parameters, self.timed, self.data = [], [], {}, {}
        self.specify_inputs()
        self.name_bounds()
        require_same_draws(self.inputs, importer.samples.inputs, self.timed, importer.generator)
        self.specify_parameters()

    def specify_inputs(self):
        """Fills `inputs` and `timed`."""
        im = self.importer
        placeholders = {n.name: n for n in im.program.graph.nodes if n.op == "placeholder"}
        drawn_for = {}
        for place, ((node, name), tensor, original) in enumerate(
            zip(im.reference.inputs.items(), im.input_tensors, im.recorded_inputs)
        ):
            shape = placeholders[node].meta["val"].shape
            named = [fixed(e) if fixed(e) is not None else im.sizes[e.node.expr] for e in shape]
            self.timed |= {
                n: extent for n, extent in zip(named, tensor.shape) if isinstance(n, str)
            }
            if not original.is_contiguous():
                im.notes.append(f"{name} is not contiguous in the file, but contiguous in the task")
            self.note_shared_draws(name, original, drawn_for)
            if len({one.shape for one in im.samples.inputs.get(place, [])}) > 1:
                im.notes.append(f"{name}: the file draws its shape anew in each call")
            spec = {"name": name, "shape": named, "dtype": tensor.dtype}
            spec["init"] = self.init_of(name, original, tensor, place)
            call = im.input_record.look_up(original)
            spec["has_mean"] = has_mean(call, spec["init"])
            self.inputs.append(spec)

    def note_shared_draws(self, name, recorded, drawn_for):
        """Adds a note if an input is made of the same draws as an input before it.

        drawn_for: by draw, the first input that is made of it; draws of this input are added.
        """
        im = self.importer
        draws = {
            id(leaf)
            for leaf in leaves_of(im.input_record.look_up(recorded), [])
            if leaf is not None
        }
        shared = sorted({drawn_for[draw] for draw in draws if draw in drawn_for})
        if shared:
            im.notes.append(
                f"{name} is made of the same random numbers as {shared[0]} in the file, "
                "but drawn independently in the task"
            )
        for draw in draws:
            drawn_for.setdefault(draw, name)

    def name_bounds(self):
        """Replaces the upper bound of integers from 0 by the name of the only size that equals it.

        The bound stays if that size is the tensor's own first one.
        """
        for spec in self.inputs:
            init, same = spec["init"], [n for n, v in self.timed.items() if v == spec["init"].b]
            if (
                init.of == "integers"
                and len(same) == 1
                and same[0] not in spec["shape"][:1]
                and init.a == 0
            ):
                init.b = same[0]

    def made_of_each_other(self):
        """Returns the placeholders of parameters that share random numbers with a buffer, or of
        buffers that share them with others."""
        im, owners = self.importer, {}
        for node in im.reference.parameters:
            call = self.recorded_call(node)
            for leaf in [] if call is None else leaves_of(call, []):
                if leaf is not None:
                    owners.setdefault(id(leaf), []).append(node)
        dependent = set()
        for nodes in owners.values():
            nodes = list(dict.fromkeys(nodes))
            if len(nodes) < 2:
                continue
            if all(self.is_learned(n) for n in nodes):
                names = " and ".join(im.reference.parameters[n] for n in nodes[:2])
                im.notes.append(
                    f"{names} are made of the same random numbers, but drawn independently in the "
                    "task"
                )
            else:
                dependent.update(nodes)
        return dependent

    def recorded_call(self, node):
        """Returns the Call that made the tensor of a placeholder, or None if it is unknown."""
        recorded = self.drawn.get(self.targets[node])
        return None if recorded is None else self.importer.model_record.look_up(recorded)

    def is_learned(self, node):
        """Returns whether a placeholder is a parameter that training changes."""
        value = self.importer.constants[node]
        return isinstance(value, torch.nn.Parameter) and value.requires_grad

    def specify_parameters(self):
        """Fills `parameters` and `data`."""
        im = self.importer
        self.targets = {s.arg.name: s.target for s in im.program.graph_signature.input_specs}
        self.drawn = loose_tensors(im.drawn_model) | named_tensors(im.drawn_model)
        require_separate_memory(im)
        self.unregistered = []
        self.dependent = self.made_of_each_other()
        self.kept, self.unfollowed = [], []
        self.parameters = [
            self.parameter_spec(node, name) for node, name in im.reference.parameters.items()
        ]
        for spec, tensor in self.unfollowed:
            self.specify_unfollowed(spec, tensor)
        if self.unregistered:
            im.notes.append(
                f"not registered as parameters or buffers: {', '.join(self.unregistered)}; the "
                "task keeps the values of the file's run, and draws parameters anew"
            )
        for one, other in im.equal_tensors:
            im.notes.append(f"{other} equals {one} in the file, and both are one parameter")
        for number, _, _ in im.samples.numbers_of_model:
            im.notes.append(
                f"{number}{line_of(im.source.text, number)} is a number that the file draws, or "
                "computes from drawn ones; the task has that of the file's run"
            )
        if bytes_of(self.data.values()) > DATA_BYTES:
            raise Failure(
                f"its constants take {bytes_of(self.data.values()) >> 20} MiB, more than the "
                f"{DATA_BYTES >> 20} MiB that a task may carry"
            )

    def init_of(self, name, recorded, tensor, place):
        """Returns the Init of an input: as recorded, else as measured, else a default one."""
        call = self.importer.input_record.look_up(recorded)
        require_written(name, call, tensor)
        init = init_from(call, tensor.dtype)
        if init is not None and init.of == "constant" and not init.expr:
            init = exact_constant(init, tensor)
        if init is not None and not is_drawable(init, tensor, self.importer.generator):
            init = None
        if init is None and tensor.device.type == "meta":
            self.importer.notes.append(
                f"{name}: how it is drawn cannot be followed, and it is too large to be measured; "
                "a default is declared"
            )
            return (
                Init("coin" if tensor.dtype == torch.bool else "normal")
                if not is_integer(tensor.dtype)
                else Init("integers", 0, 2)
            )
        if init is None:
            samples = self.importer.samples.inputs.get(place)
            fitted = self.measured(name, tensor, samples)
            if is_integer(tensor.dtype) and are_distinct(call, samples, self.importer.source.text):
                raise Failure(
                    f"{name}: it is made of distinct numbers, as of a permutation, {NOT_FOLLOWED}, "
                    "or give the whole permutation and take a part of it in forward()"
                )
            return fitted
        self.note_means(name, call, init)
        return init

    def note_means(self, name, call, init):
        """Adds a note if a number that the file draws counts as its mean in an Init."""
        if has_mean(call, init):
            self.importer.notes.append(f"{name}: a number that the file draws counts as its mean")

    def measured(self, name, tensor, samples=None):
        """Returns the Init that fits a tensor's values, and adds a note that it was measured.

        samples: the tensor as the file makes it with different seeds, if they are to be compared.
        Raises Failure if something holds between the elements, which independent draws would lose.
        """
        try:
            init = measured_init(tensor)
            same_shape = samples and all(one.shape == tensor.shape for one in samples)
            if init.of != "constant" and same_shape:
                init = measured_init(torch.stack(samples))
        except Unprintable as error:
            raise Failure(f"{name}: {error}") from None
        if init.of == "constant" and not init.expr:
            init = exact_constant(init, tensor)
        found = None
        if samples and init.of != "constant":
            found = structure_of(samples)
        elif samples and not are_equal(samples):
            found = "all its elements are one number, which is drawn"
        if found == SAME_VALUES:
            raise Failure(f"{name}: {found}; make it a buffer of the Model (register_buffer)")
        if found is not None:
            raise Failure(f"{name}: {found}, {NOT_FOLLOWED}")
        if init.of != "constant":
            self.importer.notes.append(
                f"{name}: how it is drawn cannot be followed; measured as "
                f"{init.text().strip(chr(34)) or 'a fair coin'}"
            )
        return init

    def as_data(self, name, spec, tensor):
        """Returns a parameter's specification with its values in the data file."""
        self.data[name] = tensor
        return spec | {"data": self.importer.name + ".safetensors"}

    def parameter_spec(self, node, name):
        """Returns a parameter's name, shape, type, and its Init or its data file.

        Values that are neither random nor all equal go into the data file.
        """
        tensor = self.importer.constants[node]
        require_type(name, tensor)
        spec = {"name": name, "shape": list(tensor.shape), "dtype": tensor.dtype}
        spec["fixed"] = node in self.importer.made_in_forward
        call = self.recorded_call(node)
        require_written(name, call, tensor)
        if node in self.dependent and not tensor.is_meta:
            self.importer.notes.append(
                f"{name} is made of the same random numbers as another parameter or buffer; it "
                "keeps the values of the file's run in every call"
            )
            return self.as_data(name, spec | {"fixed": True}, tensor)
        samples = self.importer.samples.of_parameter(self.targets[node])
        init = None if call is None else init_from(call, tensor.dtype)
        is_deterministic = init is not None and init.of == "constant"
        if is_deterministic and not init.expr and is_drawn_exactly(init.a, tensor):
            is_learned = isinstance(tensor, torch.nn.Parameter) or self.targets[node].endswith(
                ("running_mean", "running_var")
            )
            if not (is_learned and tensor.dtype.is_floating_point):
                self.note_kept(name, samples)
                return spec | {"init": init}
            return spec | self.near(name, init)
        is_exact = (
            is_deterministic
            or is_integer(tensor.dtype)
            or (init is None and not isinstance(tensor, torch.nn.Parameter))
        )
        if is_exact and tensor.device.type != "meta":
            return self.exact_spec(node, spec, tensor, samples)
        found = None
        if init is not None and is_drawable(init, tensor, self.importer.generator):
            found = lost_in_draws(init, tensor, samples, self.importer.generator)
            if found is None:
                self.note_means(name, call, init)
                return spec | {"init": init}
        if tensor.device.type == "meta":
            raise Failure(
                f"{name}: how it is initialized cannot be followed, and it is too large to be made "
                "here"
            )
        if init is None:
            samples = self.importer.samples.of_parameter(self.targets[node], is_needed=True)
        found = found or (structure_of(samples) if samples else None)
        if found is not None:
            is_learned = isinstance(tensor, torch.nn.Parameter) and found == SAME_VALUES
            self.importer.notes.append(
                f"{name}: {found}, and how it is made cannot be followed; it keeps the values of "
                "the file's run" + ("" if is_learned else " in every call")
            )
            return self.as_data(name, spec | {"fixed": not is_learned}, tensor)
        if None not in leaves_of(call, []) or not samples or are_equal(samples):
            return spec | {"init": self.measured(name, tensor)}
        self.unfollowed.append((spec, tensor))
        return spec

    def specify_unfollowed(self, spec, tensor):
        """Fits a distribution to a parameter, or keeps its values if what the task keeps may be
        computed from them."""
        im, name = self.importer, spec["name"]
        others = self.kept + [number for number, _, _ in im.samples.numbers_of_model]
        if not others:
            spec["init"] = self.measured(name, tensor)
            return
        im.notes.append(
            f"{name}: how it is drawn cannot be followed, and {others[0]} may be computed from it; "
            "it keeps the values of the file's run in every call"
        )
        spec |= self.as_data(name, {"fixed": True}, tensor)

    def exact_spec(self, node, spec, tensor, samples):
        """Returns the specification of a parameter that keeps its values, as data or a number."""
        name, is_unrecorded = spec["name"], self.targets[node] not in self.drawn
        if is_unrecorded and tensor.dtype.is_floating_point and not spec["fixed"]:
            self.unregistered.append(name)
        else:
            self.note_kept(name, samples)
        level = tensor.reshape(-1)[0].item() if tensor.numel() else 0
        if bool((tensor == level).all()) and is_drawn_exactly(level, tensor):
            return spec | {"init": Init("constant", float(level))}
        return self.as_data(name, spec, tensor)

    def note_kept(self, name, samples):
        """Adds a note if a tensor that the task does not draw differs from seed to seed."""
        if samples and not are_equal(samples):
            self.kept.append(name)
            self.importer.notes.append(
                f"{name}: how it is drawn cannot be followed; it keeps the values of the file's "
                "run, and parameters are drawn anew"
            )

    def near(self, name, constant):
        """Specifies the Init of a learned parameter that the file sets to one value.

        Training would change that value.
        """
        said = "the file sets to one value"
        if not any(said in note for note in self.importer.notes):
            self.importer.notes.append(
                f"parameters that {said} ({name}, ...) "
                + (
                    "are drawn near it"
                    if self.importer.varies_constants
                    else "keep it, except in some checks (`hone task import --vary-constants`, or "
                    '"vary_constants" over HTTP, draws them near it)'
                )
            )
        if not self.importer.varies_constants:
            return {"init": constant, "varied": False}
        near = (
            Init("uniform", constant.a / 2, constant.a * 1.5)
            if constant.a > 0
            else Init("normal", constant.a, 0.1)
        )
        return {"init": near, "varied": True}

    def draw_varied_parameters(self):
        """Returns values, by placeholder, of the parameters that --vary-constants has drawn.

        The file sets them to one value.
        """
        return {
            node: spec["init"].draw(spec["shape"], spec["dtype"], {}, self.importer.generator)
            for node, spec in zip(self.importer.reference.parameters, self.parameters)
            if spec.get("varied")
        }

    def draw_inputs(self, sizes):
        """Draws inputs as the task declares them.

        Raises Failure if an input cannot be drawn at these sizes.
        """
        tensors = []
        for spec in self.inputs:
            shape = [sizes.get(d, d) if isinstance(d, str) else d for d in spec["shape"]]
            try:
                tensors.append(
                    spec["init"].draw(shape, spec["dtype"], sizes, self.importer.generator)
                )
            except Exception as error:
                raise Failure(
                    f"{spec['name']} cannot be drawn as {spec['init'].text()}: {str(error)[:200]}"
                ) from None
        return tensors


def require_written(name, call, tensor):
    """Raises Failure if the recorded call leaves a tensor's memory as it is."""
    if is_unwritten(call) and tensor.numel() > 0:
        raise Failure(f"{name}: nothing is written to its memory (torch.empty)")


def has_mean(call, init):
    """Returns whether a number that the file draws counts as its mean in an Init."""
    drawn = leaves_of(call, [], with_scalars=True) if init.expr else []
    return len(drawn) > len(leaves_of(call, []))
