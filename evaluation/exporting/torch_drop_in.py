# ---- Puts the variant in place of the original module's forward().

import collections as _collections
import contextlib as _contextlib
import math as _math
import re as _re
import warnings as _warnings
import weakref as _weakref

import torch as _torch


@_contextlib.contextmanager
def _numerics():
    """Sets torch's TF32 and autotuning as the variant was judged, and sets them back."""
    wanted = (_SETTINGS["tf32"], _SETTINGS["tf32"], _SETTINGS["cudnn_benchmark"])
    matmul, cudnn = _torch.backends.cuda.matmul, _torch.backends.cudnn
    before = (matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark)
    if before == wanted:
        yield
        return
    try:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = wanted
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before


def _named_places(module):
    """Returns the dictionary and key of every tensor that a module holds, by the name that a task
    gives it: "conv.weight" becomes conv_weight."""
    places = {}
    for path, part in module.named_modules():
        for held in (part._parameters, part._buffers, part.__dict__):
            for key, value in held.items():
                if isinstance(value, _torch.Tensor):
                    name = _re.sub(r"\W", "_", f"{path}.{key}" if path else key)
                    places.setdefault(name, (held, key))
    return places


def _agrees(given, expected):
    """Compares a result with the original's, by the tolerances of the task."""
    given = given if isinstance(given, (tuple, list)) else [given]
    expected = expected if isinstance(expected, (tuple, list)) else [expected]
    if len(given) != len(expected):
        return False
    for a, b in zip(given, expected):
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if not b.dtype.is_floating_point:
            if not _torch.equal(a, b):
                return False
            continue
        rtol, atol = _TOLERANCES[str(b.dtype).removeprefix("torch.")]
        finite = b.isfinite()
        if not _torch.equal(a.isfinite(), finite):
            return False
        a, b = a[finite], b[finite]
        rms = _math.sqrt(sum(p.double().square().sum().item() for p in b.split(1 << 24)))
        rms /= _math.sqrt(max(1, b.numel()))
        for part, right in zip(a.split(1 << 24), b.split(1 << 24)):
            part, right = part.double(), right.double()
            # The original is not exact itself, so that a result may be twice as far from it.
            if bool(((part - right).abs() > 2 * (atol * rms + rtol * right.abs())).any()):
                return False
    return True


class _Captured:
    """A call as a CUDA graph. It keeps the memory of its arguments and outputs."""

    def __init__(self, program, arguments):
        self.graph, self.arguments = _torch.cuda.CUDAGraph(), arguments
        with _torch.cuda.graph(self.graph):
            outputs = program.call(arguments)
        self.is_single = isinstance(outputs, _torch.Tensor)
        self.outputs = (outputs,) if self.is_single else tuple(outputs)
        self.storages = [o.untyped_storage() for o in self.outputs]
        del outputs
        self.own_uses = self.uses()

    def uses(self):
        return [_torch._C._storage_Use_Count(s._cdata) for s in self.storages]

    def is_held(self):
        return self.uses() != self.own_uses

    def replay(self):
        self.graph.replay()
        given = tuple(o.view(o.shape) for o in self.outputs)
        return given[0] if self.is_single else given


class _WithGradients(_torch.autograd.Function):
    """The variant's result, with the original's gradients: backward() runs the original again."""

    @staticmethod
    def forward(ctx, module, variant, count, *tensors):
        ctx.module = module
        ctx.save_for_backward(*tensors[:count])
        ctx.parameters = tensors[count:]
        return variant.laid_out(variant.call(tensors[:count]))

    @staticmethod
    def backward(ctx, *gradients):
        inputs = ctx.saved_tensors
        wants = ctx.needs_input_grad[3:]
        inputs = [x.detach().requires_grad_(w) for x, w in zip(inputs, wants)]
        tensors = [*inputs, *ctx.parameters]
        wanted = [t for t, w in zip(tensors, wants) if w]
        with _torch.enable_grad():
            outputs = super(ModelNew, ctx.module).forward(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, gradients) if o.requires_grad and g is not None]
        found = _torch.autograd.grad(
            [o for o, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True
        )
        found = iter(found)
        return (None, None, None, *[next(found) if w else None for w in wants])


class _Variant:
    """The variant for one module: what it was checked with, its prepared parameters and graphs."""

    most_graphs = 8  # addresses of calls
    most_captures = 2  # of a call with the same addresses

    def __init__(self, module):
        places = _named_places(module)
        missing = [name for name in _PARAMETERS if name not in places]
        self.broken = f"the module has no tensor {missing[0]}" if missing else ""
        self.places = [] if missing else [places[name] for name in _PARAMETERS]
        modal = (_torch.nn.modules.batchnorm._BatchNorm, _torch.nn.modules.dropout._DropoutNd)
        self.depends_on_mode = any(isinstance(m, modal) for m in module.modules())
        self.checked = {}  # whether the variant agrees with the original, by device and shapes
        self.said = set()
        self.prepared_for, self.prepared = None, ()
        self.graphs = _collections.OrderedDict()  # by the addresses of a call

    def reason_against(self, module, inputs, named):
        if self.broken:
            return self.broken
        if named or len(inputs) != _INPUTS or not all(isinstance(x, _torch.Tensor) for x in inputs):
            return f"it takes {_INPUTS} tensors in order"
        device = inputs[0].device
        if device.type != "cuda" or any(x.device != device for x in inputs):
            return "it runs on one GPU"
        if tuple((tuple(x.shape), x.dtype) for x in inputs) not in _VERIFIED and not (
            type(module).any_shape
        ):
            shapes = ", ".join(str(list(x.shape)) for x in inputs)
            return f"it was not verified for the shapes {shapes} (ModelNew.any_shape allows them)"
        if module.training and self.depends_on_mode:
            return "it computes what the module computes after eval()"
        return ""

    def parameters_on(self, device):
        parameters = [held[key] for held, key in self.places]
        version = [(p.data_ptr(), p._version) for p in parameters]
        if self.prepared_for != (device, version):
            for name, p in zip(_PARAMETERS, parameters):
                if p.dtype != _PARAMETERS[name]:
                    raise _Refused(f"{name} is {p.dtype}, the variant needs {_PARAMETERS[name]}")
            program = _program_on(device)
            parameters = [p.detach().to(device).contiguous() for p in parameters]
            if program.prepare is not None:
                made = program.prepare(*parameters)
                parameters = list(made) if isinstance(made, (tuple, list)) else [made]
            self.prepared_for, self.prepared = (device, version), parameters
            self.graphs.clear()
        return self.prepared

    def call(self, inputs):
        inputs = [x.detach().contiguous() for x in inputs]
        device = inputs[0].device
        arguments = [*inputs, *self.parameters_on(device)]
        program = _program_on(device)
        if not _SETTINGS["cuda_graph"] or _torch.cuda.is_current_stream_capturing():
            return program.call(arguments)
        return self.call_in_graph(program, inputs, arguments)

    def call_in_graph(self, program, inputs, arguments):
        """Captures a call that comes a second time with the same addresses, and replays it from
        then on. A replay writes to the outputs of its capture, so that a graph is replayed only
        when nobody holds these any more. Two graphs take turns where the caller holds the last
        result during the next call, as in a loop."""
        key = tuple((x.data_ptr(), tuple(x.shape)) for x in inputs)
        if key not in self.graphs:
            self.graphs[key] = []
            if len(self.graphs) > self.most_graphs:
                self.graphs.popitem(last=False)
            return program.call(arguments)
        self.graphs.move_to_end(key)
        captured = self.graphs[key]
        free = next((c for c in captured if not c.is_held()), None)
        if free is None and len(captured) < self.most_captures:
            free = _Captured(program, arguments)
            captured.append(free)
        return program.call(arguments) if free is None else free.replay()

    def agrees_with_original(self, module, inputs):
        """Compares the variant with the original once for each device and shapes."""
        key = (inputs[0].device, *(tuple(x.shape) for x in inputs))
        if key in self.checked:
            return self.checked[key]
        with _torch.no_grad():
            copies = [x.detach().clone() for x in inputs]
            expected = super(ModelNew, module).forward(*copies)
            all_expected = expected if isinstance(expected, (tuple, list)) else [expected]
            self.row_major = [e.is_contiguous() for e in all_expected]
            try:
                self.checked[key] = _agrees(self.call(inputs), expected)
            except _torch.cuda.OutOfMemoryError:
                raise
            except (RuntimeError, AttributeError, TypeError) as error:
                raise _Refused(f"it fails here: {error}") from error
            if not self.checked[key]:
                self.say("its result differs from the original's")
        return self.checked[key]

    def result(self, module, inputs):
        if _torch.is_grad_enabled():
            parameters = [p for p in module.parameters() if p.requires_grad]
            if parameters or any(x.requires_grad for x in inputs):
                return _WithGradients.apply(module, self, len(inputs), *inputs, *parameters)
        with _torch.no_grad():
            return self.laid_out(self.call(inputs))

    def laid_out(self, result):
        """Returns a result with the outputs row-major that are row-major in the original."""
        if isinstance(result, (tuple, list)):
            return tuple(r.contiguous() if m else r for r, m in zip(result, self.row_major))
        return result.contiguous() if self.row_major[0] else result

    def say(self, reason):
        if reason not in self.said:
            self.said.add(reason)
            _warnings.warn(
                f"the original module runs in place of the variant: {reason}",
                ExportWarning,
                stacklevel=4,
            )


_variants = _weakref.WeakKeyDictionary()


class ModelNew(Model):
    """The original module with the variant in place of its forward().

    Parameters, state_dict and signature are the original's, and so are gradients, for which
    backward() runs the original. A call that the variant was not made or verified for runs the
    original as well, with an ExportWarning: other shapes or types, another device than a GPU,
    training with dropout or batch normalisation. The first call on each GPU and for each set of
    shapes is compared with the original.
    """

    any_shape = False  # whether shapes are tried that the variant was not verified for

    def forward(self, *inputs, **named):
        variant = _variants.get(self)
        if variant is None:
            variant = _variants.setdefault(self, _Variant(self))
        reason = variant.reason_against(self, inputs, named)
        if not reason:
            try:
                with _numerics():
                    if variant.agrees_with_original(self, inputs):
                        return variant.result(self, inputs)
                return super().forward(*inputs, **named)
            except _Refused as refusal:
                variant.broken = reason = str(refusal)
        variant.say(reason)
        return super().forward(*inputs, **named)
