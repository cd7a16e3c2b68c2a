"""Checks modules that `hone export --as torch` wrote, on a machine that needs no GPU.

Prints one JSON object per file: whether ModelNew takes Model's state, whether it runs the original
here and says so, and, if the variant has no kernels, whether its host program agrees with the
original and has its gradients.
"""

import importlib.util
import json
import math
import sys
import warnings

import torch


def load(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def host_program(exported, module):
    """Returns a function of the inputs that runs the variant's host program on the CPU."""
    operators = exported._Operators()
    operators.device = torch.device("cpu")
    forward, prepare = exported._program(
        operators, torch.nn.functional, math, None, lambda k: None, lambda: None
    )
    parameters = [held[key].detach() for held, key in exported._Variant(module).places]
    if prepare is not None:
        made = prepare(*parameters)
        parameters = list(made) if isinstance(made, (tuple, list)) else [made]
    return lambda inputs: forward(*inputs, *parameters)


class OnTheCpu:
    """Stands for exported._Variant where there is no GPU."""

    def __init__(self, run):
        self.call = run

    @staticmethod
    def laid_out(result):
        return result


def gradients_agree(exported, module, run, inputs):
    inputs = [x.detach().requires_grad_(x.dtype.is_floating_point) for x in inputs]
    parameters = list(module.parameters())
    tensors = [t for t in (*inputs, *parameters) if t.requires_grad]
    result = exported._WithGradients.apply(module, OnTheCpu(run), len(inputs), *inputs, *parameters)
    result = result[0] if isinstance(result, tuple) else result
    expected = exported.Model.forward(module, *inputs)
    expected = expected[0] if isinstance(expected, tuple) else expected
    weights = torch.randn_like(expected)
    given = torch.autograd.grad(result, tensors, weights, allow_unused=True)
    wanted = torch.autograd.grad(expected, tensors, weights, allow_unused=True)
    return all(
        (g is None and w is None) or torch.allclose(g, w, rtol=1e-4, atol=1e-4)
        for g, w in zip(given, wanted)
    )


def check(path):
    exported = load(path)
    torch.manual_seed(3)
    original = exported.Model(*exported.get_init_inputs()).eval()
    module = exported.ModelNew(*exported.get_init_inputs()).eval()
    module.load_state_dict(original.state_dict())
    inputs = exported.get_inputs()
    facts = {"file": path, "broken": exported._Variant(module).broken}
    with warnings.catch_warnings(record=True) as said, torch.no_grad():
        warnings.simplefilter("always")
        expected = original(*inputs)
        facts["same"] = exported._agrees(module(*inputs), expected)
        facts["said"] = [str(w.message) for w in said]
    facts["kernels"] = exported._KERNELS
    shapes = tuple((tuple(x.shape), x.dtype) for x in inputs)
    facts["verified"] = shapes in exported._VERIFIED
    if not exported._CUDA:
        run = host_program(exported, module)
        with torch.no_grad():
            facts["program"] = exported._agrees(run(inputs), expected)
        facts["gradients"] = gradients_agree(exported, module, run, inputs)
    return facts


for file in sys.argv[1:]:
    print(json.dumps(check(file)))
