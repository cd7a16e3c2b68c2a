# ---- Replaces the original module's forward() with the variant.

import math as _hone_math
import re as _hone_re
import threading as _hone_threading
import warnings as _hone_warnings
import weakref as _hone_weakref

import torch as _hone_torch
import torch.utils._pytree as _hone_pytree


class ExportWarning(UserWarning):
    """Says why a call ran the original module instead of the variant."""


def _hone_named_places(module):
    """Returns where a module holds its tensors, by the names that a task gives them.

    "conv.weight" becomes conv_weight. A place is the path to the part that holds the tensor, the
    name of the part's dictionary, and the key.
    """
    places = {}
    for path, part in module.named_modules():
        for held in ("_parameters", "_buffers", "__dict__"):
            for key, value in getattr(part, held).items():
                if isinstance(value, _hone_torch.Tensor):
                    name = _hone_re.sub(r"\W", "_", f"{path}.{key}" if path else key)
                    places.setdefault(name, (tuple(path.split(".")) if path else (), held, key))
    return places


def _hone_holder(module, place):
    """Returns the dictionary that holds a tensor of the module. Raises KeyError."""
    for name in place[0]:
        module = module._modules[name]
    return getattr(module, place[1])


def _hone_agrees(given, expected):
    """Compares results with the original's, by the tolerances of the task."""
    if len(given) != len(expected):
        return False
    for a, b in zip(given, expected):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not b.dtype.is_floating_point:
            if not _hone_torch.equal(a, b):
                return False
            continue
        rtol, atol = _hone_TOLERANCES[str(b.dtype).removeprefix("torch.")]
        finite = b.isfinite()
        if not _hone_torch.equal(a.isfinite(), finite):
            return False
        a, b = a[finite], b[finite]
        rms = _hone_math.sqrt(sum(p.double().square().sum().item() for p in b.split(1 << 24)))
        rms /= _hone_math.sqrt(max(1, b.numel()))
        for part, right in zip(a.split(1 << 24), b.split(1 << 24)):
            part, right = part.double(), right.double()
            # The original is not exact itself, so that a result may be twice as far from it.
            if bool(((part - right).abs() > 2 * (atol * rms + rtol * right.abs())).any()):
                return False
    return True


class _hone_WithGradients(_hone_torch.autograd.Function):
    """The variant's results, with the original's gradients: backward() runs the original again."""

    @staticmethod
    def forward(ctx, module, variant, checked, *tensors):
        ctx.module, ctx.variant, ctx.checked = module, variant, checked
        ctx.save_for_backward(*tensors)
        outputs = checked.laid_out(variant.call(checked, tensors[:_hone_INPUTS]))
        return tuple(o.detach() for o in outputs)

    @staticmethod
    @_hone_torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        wants = ctx.needs_input_grad[3:]
        tensors = [t.detach().requires_grad_(w) for t, w in zip(ctx.saved_tensors, wants)]
        wanted = [t for t, w in zip(tensors, wants) if w]
        with _hone_torch.enable_grad():
            # A module may write to its inputs, which leaves do not allow.
            inputs = [t.clone() for t in tensors[:_hone_INPUTS]]
            if ctx.checked.structure is not None:
                inputs = _hone_pytree.tree_unflatten(inputs, ctx.checked.structure)
            outputs = ctx.variant.run_original(ctx.module, inputs, tensors[_hone_INPUTS:])
        outputs = _hone_pytree.tree_leaves(outputs)
        pairs = [(o, g) for o, g in zip(outputs, gradients) if o.requires_grad and g is not None]
        found = iter(
            _hone_torch.autograd.grad(
                [o for o, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True
            )
        )
        return (None, None, None, *[next(found) if w else None for w in wants])


class _hone_Checked:
    """What the first call of a kind has shown: why the variant does not serve such calls, or the
    form of the original's result."""

    def __init__(self, refusal, structure):
        self.refusal, self.structure = refusal, structure  # None if all inputs are plain tensors
        self.program = None

    def expect(self, expected):
        leaves, form = _hone_pytree.tree_flatten(expected)
        if not all(isinstance(e, _hone_torch.Tensor) for e in leaves):
            self.refusal = "the original returns more than tensors"
            return
        self.row_major = [e.is_contiguous() for e in leaves]
        self.form = None if isinstance(expected, _hone_torch.Tensor) else form

    def laid_out(self, outputs):
        """Returns the outputs, those row-major that are row-major in the original."""
        if self.form is None:  # the usual case
            return [outputs[0].contiguous()] if self.row_major[0] else outputs
        return [o.contiguous() if m else o for o, m in zip(outputs, self.row_major)]

    def formed(self, outputs):
        """Returns the outputs in the form of the original's result."""
        if self.form is None:
            return outputs[0]
        return _hone_pytree.tree_unflatten(list(outputs), self.form)


class _hone_Variant:
    """The variant for one module: the kinds of calls that it has seen, its prepared parameters and
    graphs. Its references to the module and its parts are weak: one from here to the module, also
    by way of a part's hook, would keep the module in _hone_variants for good."""

    max_kinds = 1024

    def __init__(self, module):
        places = _hone_named_places(module)
        missing = [name for name in _hone_PARAMETERS if name not in places]
        self.broken = f"the module has no tensor {missing[0]}" if missing else ""
        self.places = [] if missing else [places[name] for name in _hone_PARAMETERS]
        parts = {path: _hone_weakref.proxy(part) for path, part in module.named_modules()}
        # Where each parameter is: the part, the name of the part's dictionary, and the key.
        self.sources = [(parts[".".join(path)], held, key) for path, held, key in self.places]
        self.families = [(p, [*map(id, p._modules.values())]) for p in parts.values()]
        self.kinds = {}  # _hone_Checked by what a call's service depends on
        self.said = set()
        self.graphs = _hone_Graphs()
        self.parameters, self.state, self.described = [], [], []
        self.forget_prepared()

    def forget_prepared(self):
        self.prepared_on, self.prepared = None, []
        self.graphs.clear()

    def modes(self):
        """Returns the training modes of all parts, or None if a part has been replaced."""
        modes = []
        try:
            for part, children in self.families:
                held = part._modules
                if (held or children) and [*map(id, held.values())] != children:
                    return None
                modes.append(part.training)
        except ReferenceError:  # a part is gone, whose id another may have
            return None
        return modes

    def read_parameters(self):
        """Returns the module's parameters. Forgets what was made of them if they have changed."""
        try:
            parameters = [getattr(part, held)[key] for part, held, key in self.sources]
            state = [
                (id(p), p.data_ptr(), 0 if p.is_inference() else p._version) for p in parameters
            ]
        except (KeyError, AttributeError) as error:
            raise _hone_Refused(f"the module has changed: {error!r}") from error
        if state != self.state:
            self.forget_prepared()
            described = [(p.shape, p.dtype, p.device) for p in parameters]
            if described != self.described:
                self.kinds.clear()
            # The tensors are kept, so that no other tensor gets their addresses.
            self.parameters, self.state, self.described = parameters, state, described
        return parameters

    def kind_of(self, module, modes, inputs, structure, named):
        """Returns everything on which it depends whether the variant serves a call, other than the
        values of the parameters."""
        kind = [
            type(module).any_shape,
            bool(named),
            "_is_replica" in module.__dict__,  # by DataParallel
            _hone_torch.is_autocast_enabled("cuda"),
            None if structure is None else repr(structure),
            *modes,
        ]
        for x in inputs:
            if isinstance(x, _hone_torch.Tensor):
                kind += (x.shape, x.dtype, x.device)
            else:
                kind.append(type(x))
        return tuple(kind)

    def reason_against(self, module, inputs, named, parameters):
        if self.broken:
            return self.broken
        if (
            named
            or len(inputs) != _hone_INPUTS
            or not all(isinstance(x, _hone_torch.Tensor) for x in inputs)
        ):
            return f"it takes {_hone_INPUTS} tensors in order"
        devices = {x.device for x in inputs}
        if len(devices) > 1 or devices.pop().type != _hone_ProgramOnDevice.device_type:
            return "it runs on one GPU"
        shapes = _hone_shapes_of(inputs)
        if shapes not in _hone_VERIFIED:
            if tuple(x.dtype for x in inputs) not in _hone_TYPES:
                return f"it was not made for the types {[x.dtype for x in inputs]}"
            if not type(module).any_shape:
                said = ", ".join(str(list(x.shape)) for x in inputs)
                said = f"it was not verified for the shapes {said}"
                return f"{said} (ModelNew.any_shape allows them)"
        elif _hone_VERIFIED[shapes] != tuple(tuple(p.shape) for p in parameters):
            return "the module's tensors have other shapes than those of the task"
        for (name, dtype), p in zip(_hone_PARAMETERS.items(), parameters):
            if p.dtype != dtype:
                return f"{name} is {p.dtype}, the variant needs {dtype}"
        modal_parts = [m for m in module.modules() if isinstance(m, _hone_MODAL)]
        if modal_parts and (module.training or any(m.training for m in modal_parts)):
            return "it computes what the module computes after eval()"
        if _hone_torch.is_autocast_enabled("cuda"):
            return "it was not made for autocast"
        if "_is_replica" in module.__dict__:
            return "it cannot be replicated"
        return ""

    def prepare(self, program):
        """Makes what the program needs of the parameters."""
        self.forget_prepared()
        made = [p.detach().to(program.device).contiguous() for p in self.parameters]
        self.prepared, self.prepared_on = program.prepared(made), program

    def call(self, checked, inputs):
        """Returns the outputs of the variant's host program as a list."""
        program = checked.program
        if not program.is_current():
            with _hone_torch.cuda.device(program.device):
                return self.call(checked, inputs)
        # Nothing that the program gets requires gradients, so that it records none.
        inputs = [(x.detach() if x.requires_grad else x).contiguous() for x in inputs]
        if self.prepared_on is not program:
            self.prepare(program)
        arguments = [*inputs, *self.prepared]
        if _hone_SETTINGS["cuda_graph"] and not _hone_torch.cuda.is_current_stream_capturing():
            outputs = self.graphs.call(program, arguments)
        else:
            outputs = program.call(arguments)
        # An output is a separate tensor, also where the program returns one of its arguments.
        if not {*map(id, arguments)}.isdisjoint(map(id, outputs)):
            outputs = [o.detach() for o in outputs]
        return outputs

    def run_original(self, module, inputs, parameters):
        """Runs the original with these tensors instead of the module's own."""
        holders = [_hone_holder(module, place) for place in self.places]
        own = [held[place[2]] for held, place in zip(holders, self.places)]
        try:
            for held, place, p in zip(holders, self.places, parameters):
                held[place[2]] = p
            return super(ModelNew, module).forward(*inputs)
        finally:
            for held, place, p in zip(holders, self.places, own):
                held[place[2]] = p

    def first_call(self, module, given, inputs, structure, named, parameters):
        """Compares the variant with the original. Returns what that has shown."""
        reason = self.reason_against(module, inputs, named, parameters)
        checked = _hone_Checked(reason, structure)
        if reason:
            return checked
        with _hone_torch.no_grad():
            state = [(b, b.clone()) for b in module.buffers()]
            copies = _hone_pytree.tree_map_only(_hone_torch.Tensor, _hone_torch.clone, given)
            expected = super(ModelNew, module).forward(*copies)
            for buffer, before in state:
                if not _hone_torch.equal(buffer, before):
                    buffer.copy_(before)
            checked.expect(expected)
            if checked.refusal:
                return checked
            try:
                checked.program = _hone_program_on(inputs[0].device)
                outputs = self.call(checked, inputs)
                if not _hone_agrees(outputs, _hone_pytree.tree_leaves(expected)):
                    checked.refusal = "its result differs from the original's"
            except Exception as error:
                checked.refusal = f"it fails here: {type(error).__name__}: {error}"
        return checked

    def serve(self, module, modes, given, named):
        """Returns the variant's results in the form of the original's."""
        if _hone_torch._C._is_tracing():  # shapes are tensors there
            raise _hone_Refused("it cannot be traced")
        parameters = self.read_parameters() if self.sources else []
        inputs, structure = given, None
        for x in given:
            if not isinstance(x, _hone_torch.Tensor):
                inputs, structure = _hone_pytree.tree_flatten(given)
                break
        kind = self.kind_of(module, modes, inputs, structure, named)
        checked = self.kinds.get(kind)
        before = _hone_read_numerics()
        try:
            if before != _hone_NUMERICS:
                _hone_write_numerics(_hone_NUMERICS)
            if checked is None:
                checked = self.first_call(module, given, inputs, structure, named, parameters)
                if len(self.kinds) >= self.max_kinds:
                    self.kinds.clear()
                self.kinds[kind] = checked
            if checked.refusal:
                raise _hone_Refused(checked.refusal)
            tensors = [*inputs, *parameters]
            if _hone_torch.is_grad_enabled() and True in [t.requires_grad for t in tensors]:
                outputs = _hone_WithGradients.apply(module, self, checked, *tensors)
            else:
                outputs = checked.laid_out(self.call(checked, inputs))
        finally:
            if before != _hone_NUMERICS:
                _hone_write_numerics(before)
        return checked.formed(outputs)

    def say(self, message):
        if message not in self.said:
            self.said.add(message)
            _hone_warnings.warn(message, ExportWarning, stacklevel=4)


def _hone_shapes_of(inputs):
    return tuple((tuple(x.shape), x.dtype) for x in inputs)


_hone_MODAL = (  # parts that compute something else while they are trained
    _hone_torch.nn.modules.batchnorm._BatchNorm,
    _hone_torch.nn.modules.dropout._DropoutNd,
)
_hone_TYPES = {tuple(dtype for _, dtype in inputs) for inputs in _hone_VERIFIED}
_hone_variants = _hone_weakref.WeakKeyDictionary()
_hone_lock = _hone_threading.RLock()  # kernels' arguments, streams and torch's settings are shared


class ModelNew(Model):
    """The original module, whose forward() runs the variant.

    Parameters, state_dict and signature are the original's, and so are gradients of the first
    order, for which backward() runs the original. A call that the variant was not made or verified
    for runs the original as well, with an ExportWarning: other shapes or types, another device than
    a GPU, autocast, training with dropout or batch normalization. The first call on each GPU and
    for each set of shapes is compared with the original.

    Prepared parameters are made anew when a parameter changes. A change through `.data` does not
    show: call refresh() after it.
    """

    any_shape = False  # whether shapes are tried that the variant was not verified for

    def forward(self, *inputs, **named):
        if _hone_torch.compiler.is_compiling():
            return super().forward(*inputs, **named)
        with _hone_lock:
            variant = _hone_variants.get(self)
            modes = None if variant is None else variant.modes()
            if modes is None:
                variant = _hone_variants[self] = _hone_Variant(self)
                modes = variant.modes()
            try:
                return variant.serve(self, modes, inputs, named)
            except _hone_Refused as refusal:
                reason = str(refusal)
        variant.say(f"the original module runs instead of the variant: {reason}")
        return super().forward(*inputs, **named)

    def refresh(self):
        """Forgets what was made of the parameters."""
        _hone_variants.pop(self, None)
