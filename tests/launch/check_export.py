"""Checks modules that `hone export --as torch` wrote, on a machine that needs no GPU.

Prints one JSON object per file: whether ModelNew takes Model's state, and whether it runs the
original here and says so. If the variant has no kernels, its host program runs on the CPU in
ModelNew: whether its results and gradients agree with the original's, also of a copy of the module
and after a parameter has changed.
"""

import copy
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


def run_on_the_cpu(exported, module):
    """Lets ModelNew run the variant's host program without a GPU."""
    operators = exported._hone_Operators()
    operators.device = torch.device("cpu")
    forward, prepare = exported._hone_program(
        operators, torch.nn.functional, math, None, lambda k: None, lambda: None
    )

    class OnTheCpu(exported._hone_Variant):
        calls = 0

        def reason_against(self, module, inputs, named):
            return self.broken

        def call(self, inputs, parameters):
            OnTheCpu.calls += 1
            with torch.no_grad():
                inputs = [x.detach() for x in inputs]
                parameters = [p.detach() for p in parameters]
                made = parameters if prepare is None else prepare(*parameters)
                made = forward(*inputs, *(made if isinstance(made, (tuple, list)) else [made]))
                made = made if isinstance(made, (tuple, list)) else [made]
                return [o.detach() for o in made]

    exported._hone_variants[module] = OnTheCpu(module)
    return OnTheCpu


def leaves(result):
    return torch.utils._pytree.tree_leaves(result)


def same(exported, module, original, inputs):
    """Compares the results of both in form and values."""
    with torch.no_grad():
        given, expected = module(*inputs), original(*inputs)
    forms = [torch.utils._pytree.tree_structure(r) for r in (given, expected)]
    return forms[0] == forms[1] and exported._hone_agrees(leaves(given), leaves(expected))


def gradients(module, inputs):
    """Returns the gradients of a weighted sum of the module's first result."""
    inputs = torch.utils._pytree.tree_map_only(
        torch.Tensor, lambda x: x.detach().requires_grad_(x.dtype.is_floating_point), inputs
    )
    tensors = [t for t in (*leaves(inputs), *module.parameters()) if t.requires_grad]
    result = leaves(module(*inputs))[0]
    torch.manual_seed(4)
    return torch.autograd.grad(result, tensors, torch.randn_like(result), allow_unused=True)


def same_gradients(module, original, inputs):
    return all(
        (g is None and w is None) or torch.allclose(g, w, rtol=1e-4, atol=1e-4)
        for g, w in zip(gradients(module, inputs), gradients(original, inputs))
    )


def check(path):
    exported = load(path)
    torch.manual_seed(3)
    original = exported.Model(*exported.get_init_inputs()).eval()
    module = exported.ModelNew(*exported.get_init_inputs()).eval()
    module.load_state_dict(original.state_dict())
    inputs = exported.get_inputs()
    facts = {"file": path, "broken": exported._hone_Variant(module).broken}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        facts["same"] = same(exported, module, original, inputs)
        facts["said"] = [str(w.message) for w in said]
    facts["kernels"] = exported._hone_KERNELS
    facts["verified"] = exported._hone_shapes_of(leaves(inputs)) in exported._hone_VERIFIED
    if exported._hone_CUDA:
        return facts
    counter = run_on_the_cpu(exported, module)
    facts["program"] = same(exported, module, original, inputs)
    facts["again"] = same(exported, module, original, inputs)
    facts["gradients"] = same_gradients(module, original, inputs)
    for model in (module, original):
        for parameter in model.parameters():
            with torch.no_grad():
                parameter.mul_(0.9)
    facts["changed"] = same(exported, module, original, inputs)
    duplicate = copy.deepcopy(module)
    run_on_the_cpu(exported, duplicate)
    facts["copied"] = same(exported, duplicate, original, inputs)
    facts["calls"] = counter.calls
    return facts


for file in sys.argv[1:]:
    print(json.dumps(check(file)))
