# ---- Puts the variant in place of the original module's forward().

import collections as _hone_collections
import contextlib as _hone_contextlib
import math as _hone_math
import re as _hone_re
import threading as _hone_threading
import warnings as _hone_warnings
import weakref as _hone_weakref

import torch as _hone_torch
import torch.utils._pytree as _hone_pytree


class ExportWarning(UserWarning):
    """Says why a call ran the original module instead of the variant."""


@_hone_contextlib.contextmanager
def _hone_numerics():
    """Sets torch's TF32 and autotuning as the variant was judged, and sets them back."""
    wanted = (_hone_SETTINGS["tf32"], _hone_SETTINGS["tf32"], _hone_SETTINGS["cudnn_benchmark"])
    matmul, cudnn = _hone_torch.backends.cuda.matmul, _hone_torch.backends.cudnn
    try:
        before = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
    except RuntimeError as error:  # the newer settings of precision exclude these
        raise _hone_Refused(f"torch's TF32 cannot be read: {error}") from error
    if before == wanted:
        yield
        return
    try:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = wanted
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before


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


class _hone_Captured:
    """A call as a CUDA graph. It keeps the memory of its parameters and outputs. The caller keeps
    the inputs, whose addresses are the same whenever it is replayed."""

    def __init__(self, program, inputs, parameters):
        self.graph, self.parameters = _hone_torch.cuda.CUDAGraph(), parameters
        stream = _hone_torch.cuda.Stream(program.device)
        with _hone_torch.cuda.graph(self.graph, stream=stream, capture_error_mode="thread_local"):
            self.outputs = program.call([*inputs, *parameters])
        self.storages = [o.untyped_storage() for o in self.outputs]
        self.own_uses = self.uses()

    def uses(self):
        return [_hone_torch._C._storage_Use_Count(s._cdata) for s in self.storages]

    def is_held(self):
        return self.uses() != self.own_uses

    def replay(self):
        self.graph.replay()
        return [o.detach() for o in self.outputs]


class _hone_WithGradients(_hone_torch.autograd.Function):
    """The variant's results, with the original's gradients: backward() runs the original again."""

    @staticmethod
    def forward(ctx, module, variant, checked, nested, count, *tensors):
        ctx.module, ctx.variant, ctx.nested, ctx.count = module, variant, nested, count
        ctx.save_for_backward(*tensors)
        return tuple(checked.laid_out(variant.call(tensors[:count], tensors[count:])))

    @staticmethod
    @_hone_torch.autograd.function.once_differentiable
    def backward(ctx, *gradients):
        wants = ctx.needs_input_grad[5:]
        tensors = [t.detach().requires_grad_(w) for t, w in zip(ctx.saved_tensors, wants)]
        wanted = [t for t, w in zip(tensors, wants) if w]
        with _hone_torch.enable_grad():
            # A module may write to its inputs, which leaves do not allow.
            inputs = [t.clone() for t in tensors[: ctx.count]]
            outputs = ctx.variant.run_original(
                ctx.module, _hone_pytree.tree_unflatten(inputs, ctx.nested), tensors[ctx.count :]
            )
        outputs = _hone_pytree.tree_leaves(outputs)
        pairs = [(o, g) for o, g in zip(outputs, gradients) if o.requires_grad and g is not None]
        found = iter(
            _hone_torch.autograd.grad(
                [o for o, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True
            )
        )
        return (None, None, None, None, None, *[next(found) if w else None for w in wants])


class _hone_Checked:
    """What the first call with some shapes has shown: the form of the original's result, and why
    the variant cannot take its place, if it cannot."""

    def __init__(self, expected):
        leaves, self.form = _hone_pytree.tree_flatten(expected)
        self.refusal = ""
        if not all(isinstance(e, _hone_torch.Tensor) for e in leaves):
            self.refusal = "the original returns more than tensors"
        else:
            self.row_major = [e.is_contiguous() for e in leaves]

    def laid_out(self, outputs):
        """Returns the outputs, those row-major that are row-major in the original."""
        return [o.contiguous() if m else o for o, m in zip(outputs, self.row_major)]


class _hone_Variant:
    """The variant for one module: what it was checked with, its prepared parameters and graphs."""

    most_graphs = 8  # addresses of calls
    most_captures = 2  # of a call with the same addresses

    def __init__(self, module):
        places = _hone_named_places(module)
        missing = [name for name in _hone_PARAMETERS if name not in places]
        self.broken = f"the module has no tensor {missing[0]}" if missing else ""
        self.places = [] if missing else [places[name] for name in _hone_PARAMETERS]
        modal = (
            _hone_torch.nn.modules.batchnorm._BatchNorm,
            _hone_torch.nn.modules.dropout._DropoutNd,
        )
        self.modal_parts = [m for m in module.modules() if isinstance(m, modal)]
        self.checked = {}  # _hone_Checked by device, types, shapes and modes
        self.said = set()
        self.can_capture = True
        self.forget_parameters()

    def forget_parameters(self):
        self.prepared_of, self.prepared_for, self.prepared = [], None, []
        self.graphs = _hone_collections.OrderedDict()  # by the addresses of a call

    def parameters(self, module):
        try:
            return [_hone_holder(module, place)[place[2]] for place in self.places]
        except KeyError as error:
            raise _hone_Refused(f"the module has changed: it has no {error}") from error

    def reason_against(self, module, inputs, named):
        if self.broken:
            return self.broken
        if (
            named
            or len(inputs) != _hone_INPUTS
            or not all(isinstance(x, _hone_torch.Tensor) for x in inputs)
        ):
            return f"it takes {_hone_INPUTS} tensors in order"
        device = inputs[0].device
        if device.type != "cuda" or any(x.device != device for x in inputs):
            return "it runs on one GPU"
        if _hone_shapes_of(inputs) not in _hone_VERIFIED:
            if tuple(x.dtype for x in inputs) not in _hone_TYPES:
                return f"it was not made for the types {[x.dtype for x in inputs]}"
            if not type(module).any_shape:
                shapes = ", ".join(str(list(x.shape)) for x in inputs)
                said = f"it was not verified for the shapes {shapes}"
                return f"{said} (ModelNew.any_shape allows them)"
        if module.training and self.modal_parts or any(m.training for m in self.modal_parts):
            return "it computes what the module computes after eval()"
        if _hone_torch.is_autocast_enabled("cuda"):
            return "it was not made for autocast"
        if getattr(module, "_is_replica", False) or _hone_torch.jit.is_tracing():
            return "it cannot be traced or replicated"
        return ""

    def prepare(self, device, parameters):
        versions = [0 if p.is_inference() else p._version for p in parameters]
        state = (device, [p.data_ptr() for p in parameters], versions)
        if self.prepared_for != state:
            self.forget_parameters()
            for name, p in zip(_hone_PARAMETERS, parameters):
                if p.dtype != _hone_PARAMETERS[name]:
                    raise _hone_Refused(
                        f"{name} is {p.dtype}, the variant needs {_hone_PARAMETERS[name]}"
                    )
            made = [p.detach().to(device).contiguous() for p in parameters]
            self.prepared = _hone_program_on(device).prepared(made)
            _hone_torch.cuda.current_stream(
                device
            ).synchronize()  # any stream may use them from now on
            # The tensors are kept, so that no other tensor gets their addresses.
            self.prepared_of, self.prepared_for = parameters, state
        return self.prepared

    def call(self, inputs, parameters):
        """Returns the outputs of the variant's host program as a list."""
        inputs = [x.detach().contiguous() for x in inputs]
        device = inputs[0].device
        with _hone_torch.cuda.device(device), _hone_torch.no_grad():
            program, prepared = _hone_program_on(device), self.prepare(device, parameters)
            if _hone_SETTINGS["cuda_graph"] and not _hone_torch.cuda.is_current_stream_capturing():
                return self.call_in_graph(program, inputs, prepared)
            return [o.detach() for o in program.call([*inputs, *prepared])]

    def call_in_graph(self, program, inputs, prepared):
        """Captures a call that comes a second time with the same addresses, and replays it from
        then on. A replay writes to the outputs of its capture, so that a graph is replayed only
        when nobody holds these any more. Two graphs take turns where the caller holds the last
        result during the next call, as in a loop."""
        key = (
            *((x.data_ptr(), x.shape, x.dtype) for x in inputs),
            _hone_torch.cuda.current_stream(program.device).cuda_stream,
            _hone_torch.is_inference_mode_enabled(),
        )
        if key not in self.graphs:
            self.graphs[key] = []
            if len(self.graphs) > self.most_graphs:
                self.graphs.popitem(last=False)
            return program.call([*inputs, *prepared])
        self.graphs.move_to_end(key)
        captured = self.graphs[key]
        free = next((c for c in captured if not c.is_held()), None)
        if free is None and len(captured) < self.most_captures and self.can_capture:
            try:
                free = _hone_Captured(program, inputs, prepared)
                captured.append(free)
            except RuntimeError as error:
                self.can_capture = False
                self.say(f"a CUDA graph cannot be captured, so calls are launched: {error}")
        return program.call([*inputs, *prepared]) if free is None else free.replay()

    def run_original(self, module, inputs, parameters):
        """Runs the original with these tensors in place of the module's own."""
        holders = [_hone_holder(module, place) for place in self.places]
        own = [held[place[2]] for held, place in zip(holders, self.places)]
        try:
            for held, place, p in zip(holders, self.places, parameters):
                held[place[2]] = p
            return super(ModelNew, module).forward(*inputs)
        finally:
            for held, place, p in zip(holders, self.places, own):
                held[place[2]] = p

    def check(self, module, given, inputs, parameters):
        """Compares the variant with the original once for each kind of call. Returns what it has
        shown, a _hone_Checked."""
        shapes = _hone_shapes_of(inputs)
        key = (inputs[0].device, shapes, tuple(m.training for m in module.modules()))
        if key in self.checked:
            return self.checked[key]
        verified = _hone_VERIFIED.get(shapes)
        if verified is not None and tuple(tuple(p.shape) for p in parameters) != verified:
            raise _hone_Refused("the module's tensors have other shapes than those of the task")
        with _hone_torch.no_grad():
            state = [(b, b.clone()) for b in module.buffers()]
            copies = _hone_pytree.tree_map_only(_hone_torch.Tensor, _hone_torch.clone, given)
            expected = super(ModelNew, module).forward(*copies)
            for buffer, before in state:
                buffer.copy_(before)
            checked = self.checked[key] = _hone_Checked(expected)
            if not checked.refusal:
                try:
                    if not _hone_agrees(
                        self.call(inputs, parameters), _hone_pytree.tree_leaves(expected)
                    ):
                        checked.refusal = "its result differs from the original's"
                except Exception as error:
                    checked.refusal = f"it fails here: {type(error).__name__}: {error}"
        return checked

    def run(self, module, given, inputs):
        parameters = self.parameters(module)
        checked = self.check(module, given, inputs, parameters)
        if checked.refusal:
            raise _hone_Refused(checked.refusal)
        tensors = (*inputs, *parameters)
        if _hone_torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
            nested = _hone_pytree.tree_structure(given)
            outputs = _hone_WithGradients.apply(
                module, self, checked, nested, len(inputs), *tensors
            )
        else:
            outputs = checked.laid_out(self.call(inputs, parameters))
        return _hone_pytree.tree_unflatten(list(outputs), checked.form)

    def say(self, message):
        if message not in self.said:
            self.said.add(message)
            _hone_warnings.warn(message, ExportWarning, stacklevel=4)


def _hone_shapes_of(inputs):
    return tuple((tuple(x.shape), x.dtype) for x in inputs)


_hone_TYPES = {tuple(dtype for _, dtype in inputs) for inputs in _hone_VERIFIED}
_hone_variants = _hone_weakref.WeakKeyDictionary()
_hone_lock = _hone_threading.RLock()  # kernels' arguments, streams and torch's settings are shared


class ModelNew(Model):
    """The original module with the variant in place of its forward().

    Parameters, state_dict and signature are the original's, and so are gradients of the first
    order, for which backward() runs the original. A call that the variant was not made or verified
    for runs the original as well, with an ExportWarning: other shapes or types, another device than
    a GPU, autocast, training with dropout or batch normalisation. The first call on each GPU and
    for each set of shapes is compared with the original.

    Prepared parameters are made anew when a parameter changes. A change through `.data` does not
    show: call refresh() after it.
    """

    any_shape = False  # whether shapes are tried that the variant was not verified for

    def forward(self, *inputs, **named):
        if _hone_torch.compiler.is_compiling():
            return super().forward(*inputs, **named)
        leaves = _hone_pytree.tree_leaves(inputs)
        with _hone_lock:
            variant = _hone_variants.get(self)
            if variant is None:
                variant = _hone_variants.setdefault(self, _hone_Variant(self))
            reason = variant.reason_against(self, leaves, named)
            if not reason:
                try:
                    with _hone_numerics():
                        return variant.run(self, inputs, leaves)
                except _hone_Refused as refusal:
                    reason = str(refusal)
        variant.say(f"the original module runs in place of the variant: {reason}")
        return super().forward(*inputs, **named)

    def refresh(self):
        """Forgets what was made of the parameters."""
        _hone_variants.pop(self, None)
