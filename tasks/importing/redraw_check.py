"""Finds what a file computes from its parameters in Python, such as `float(weight.max())`.

A task draws parameters anew for every seed, and such a number would stay that of the file's run.
The module is made again with other numbers instead of those draws that become parameters, and
everything else as before; the reference must agree with it.
"""

import zlib

import torch
from call_recording import draws_numbers
from cost import RUN_BYTES
from module_call import outputs_of
from module_tensors import differing_numbers, line_of, loose_tensors, named_tensors
from output_difference import difference
from recorded_draws import leaves_of
from source_file import Failure, bytes_of
from torch.utils._python_dispatch import TorchDispatchMode


class Redraw(TorchDispatchMode):
    """Replaces the results of some draws by other ones. Equal results stay equal, and all other
    draws are as they would be without.

    chosen: the numbers of the draws, as Call.draw counts them. draws: how many were made.
    """

    def __init__(self, chosen):
        super().__init__()
        self.chosen, self.draws = chosen, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if not draws_numbers(func):
            return result
        self.draws += 1
        if self.draws not in self.chosen or not isinstance(result, torch.Tensor):
            return result
        state = torch.default_generator.get_state()
        contents = str(result.flatten()[:8].tolist())
        torch.default_generator.manual_seed(zlib.crc32(contents.encode()))
        result = func(*args, **{n: v for n, v in kwargs.items() if n != "generator"})
        torch.default_generator.set_state(state)
        return result


def require_computed_from_parameters(importer, compiled, inputs):
    """Raises Failure unless the reference agrees with the module for other parameters.

    compiled: the CompiledReference. inputs: of the call that is compared.
    """
    im = importer
    kept, chosen = {}, set()
    is_followed = any(t.is_meta for t in named_tensors(im.drawn_model).values())
    for node, spec in zip(im.reference.parameters, im.specification.parameters):
        call = im.specification.recorded_call(node)
        leaves = leaves_of(call, [])
        if "data" in spec or spec["init"].of == "constant":
            kept[node] = im.constants[node]
            is_followed &= None not in leaves or node in im.made_in_forward
        else:
            chosen |= {leaf.draw for leaf in leaves if leaf is not None}
    # Nothing can be computed of values on the meta device, where the file's Model was recorded.
    if is_followed or not chosen or bytes_of(im.constants.values()) > RUN_BYTES:
        return
    before = im.model
    redraw = Redraw(chosen)
    with im.source.doing("making the Model"), redraw:
        other = im.source.model("cpu")
    if redraw.draws != im.model_record.draws:
        return  # it draws otherwise on this device than where it was recorded
    im.model = other
    if im.dtype:
        im.cast_model(getattr(torch, "float32" if im.is_widened else im.dtype))
    im.model = before
    named = loose_tensors(other) | named_tensors(other)
    targets = {s.arg.name: s.target for s in im.program.graph_signature.input_specs}
    drawn = {n: named.get(targets[n], im.constants[n]) for n in im.constants if n not in kept}
    inputs = [im.as_checked(t) for t in inputs]
    expected = outputs_of(im, other, inputs, list(other.buffers()))
    if difference(expected, compiled.call(inputs, drawn=drawn)) is not None:
        raise Failure(what_differs(im, other, {targets[n] or n: v for n, v in kept.items()}))


def what_differs(importer, other, kept):
    """Returns which value a module computes from its parameters in Python, in words.

    other: the module with other parameters. kept: the tensors that the task keeps, by name.
    """
    advice = (
        "while a task draws them anew in each run; compute it in forward() with PyTorch's operators"
    )
    found = differing_numbers(importer.model, other)
    if found:
        name, value, changed = found[0]
        return (
            f"{name}{line_of(importer.source.text, name)} is computed from drawn parameters and "
            f"becomes a number ({shown(value)} in the file's run, {shown(changed)} with other "
            f"parameters), {advice}"
        )
    named = loose_tensors(other) | named_tensors(other)
    for name, value in kept.items():
        if name in named and not torch.equal(importer.as_checked(value), named[name]):
            return (
                f"{name}{line_of(importer.source.text, name)} is computed from drawn parameters "
                f"in a way that cannot be followed, as outside of PyTorch's operators, {advice}"
            )
    return (
        "the imported reference disagrees with the module if its parameters are drawn anew: the "
        "module holds numbers that it has computed from them; compute these in forward() with "
        "PyTorch's operators"
    )


def shown(value):
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:40]
