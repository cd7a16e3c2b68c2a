"""Checks modules that `hone export --as torch` wrote, on a machine that needs no GPU.

Prints one JSON object per file: whether ModelNew takes Model's state, whether it runs the original
here and says so, and whether kernels get their arguments. If the variant has no kernels, its host
program runs on the CPU in ModelNew: whether its results and gradients agree with the original's,
also of a copy of the module and after changes of its parts and parameters, and whether a call is
checked exactly if nothing like it has been checked. A fact is null if it cannot be tried.
"""

import copy
import ctypes
import functools
import gc
import importlib.util
import json
import math
import sys
import warnings
import weakref

import torch


def load(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_on_the_cpu(exported):
    """Lets ModelNew run the variant's host program without a GPU. Returns what has been run: the
    original, the variant and its `prepare`, and with which TF32."""
    ran = {"original": 0, "variant": 0, "prepare": 0, "tf32": set()}

    class OnTheCpu(exported._hone_ProgramOnDevice):
        def __init__(self, device):
            self.device = device
            operators = exported._hone_Operators()
            operators.device = device
            self.forward, self.prepare = exported._hone_program(
                operators, torch.nn.functional, math, None, lambda k: None, lambda: None
            )

        def is_current(self):
            return True

        def synchronize(self):
            ran["prepare"] += 1

        def call(self, arguments):
            ran["variant"] += 1
            ran["tf32"].add(torch.backends.cuda.matmul.allow_tf32)
            ran["tf32"].add(torch.backends.cudnn.allow_tf32)
            return super().call(arguments)

    forward = exported.Model.forward

    def counted_forward(self, *inputs):
        ran["original"] += isinstance(self, exported.ModelNew)
        return forward(self, *inputs)

    exported.Model.forward = counted_forward
    exported._hone_ProgramOnDevice.device_type = "cpu"
    exported._hone_program_on = functools.cache(OnTheCpu)
    exported._hone_USES_STREAMS = exported._hone_SETTINGS["cuda_graph"] = False
    return ran


def leaves(result):
    return torch.utils._pytree.tree_leaves(result)


def same(exported, module, original, inputs):
    """Compares the results of both in form and values."""
    with torch.no_grad():
        torch.manual_seed(5)
        given = module(*inputs)
        torch.manual_seed(5)
        expected = original(*inputs)
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


class Driver:
    """Acts as CUDA's driver: keeps the extents and the arguments' addresses of launches."""

    def __init__(self, sizes):
        self.sizes, self.launched = sizes, []

    def cuModuleGetFunction(self, function, module, symbol):
        return 0

    def cuFuncGetParamInfo(self, function, index, offset, size):
        if index == len(self.sizes):
            return 1
        size._obj.value = self.sizes[index]
        return 0

    def cuFuncGetAttribute(self, value, attribute, function):
        return 1

    def cuLaunchKernel(self, function, *rest):
        self.launched.append((rest[:6], rest[8]))
        return 0


def kernels_get_their_arguments(exported):
    """Launches a kernel with a pointer and a number of 4 bytes, whose types change."""
    driver = Driver([8, 4])
    exported._hone_cuda_driver = lambda: driver
    kernel = exported._hone_Kernel("kernel", None, "symbol", False)
    x = torch.zeros(3)

    def passed(first, second, types):
        kernel.launch([3], [4, 2], (first, second), 0, None)
        extents, addresses = driver.launched[-1]
        values = [t.from_address(a).value for t, a in zip(types, addresses)]
        return extents == (3, 1, 1, 4, 2, 1) and values

    def refused(*arguments):
        try:
            kernel.launch([1], [1], arguments, 0, None)
        except exported._hone_Refused:
            return True
        return False

    pointer, whole, real = ctypes.c_void_p, ctypes.c_int32, ctypes.c_float
    right = [
        passed(x, -5, (pointer, whole)) == [x.data_ptr(), -5],
        passed(x, 6, (pointer, whole)) == [x.data_ptr(), 6],
        passed(7, 2.5, (ctypes.c_int64, real)) == [7, 2.5],
        passed(x[1:], 8, (pointer, whole)) == [x.data_ptr() + 4, 8],
        passed(torch.nn.Parameter(x), 9, (pointer, whole)) == [x.data_ptr(), 9],
        refused(x),
        refused(x, x),
        refused(x, None),
    ]
    launches = len(driver.launched)
    kernel.launch([0, 5], [1], (x, 1), 0, None)  # nothing to launch
    return all(right) and launches == len(driver.launched) == 5


class Calls:
    """Calls of ModelNew and of Model with the same inputs."""

    def __init__(self, exported, module, original, inputs):
        self.exported, self.module, self.original = exported, module, original
        self.inputs, self.ran = inputs, run_on_the_cpu(exported)

    def change(self, action):
        for model in (self.module, self.original):
            with torch.no_grad():
                action(model)

    def run(self, original, variant, prepare=0, inputs=None):
        """Returns whether the results are the same, and each was run as often as given. None
        means any number."""
        before = dict(self.ran)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            right = same(self.exported, self.module, self.original, inputs or self.inputs)
        ran = [self.ran[k] - before[k] for k in ("original", "variant", "prepare")]
        if right and ran == [original, variant, ran[2] if prepare is None else prepare]:
            return True
        print("same:", right, "ran:", ran, "wanted:", original, variant, prepare, file=sys.stderr)
        return False

    def known(self):
        return self.run(original=0, variant=1)

    def checked(self, prepare=0):
        return self.run(original=1, variant=2, prepare=prepare)

    def refused(self, inputs=None):
        return self.run(original=1, variant=0, inputs=inputs)


def modes_are_seen(calls):
    """Sets each part to training and back after a known call."""
    modal = calls.exported._hone_MODAL
    has_modal_parts = any(isinstance(m, modal) for m in calls.module.modules())
    right = []
    for name, part in list(calls.module.named_modules()):
        if isinstance(part, torch.nn.RNNBase) and part.dropout > 0:
            continue  # the check finds out that these differ, by chance numbers
        calls.change(lambda model, name=name: setattr(model.get_submodule(name), "training", True))
        refuses = isinstance(part, modal) or (name == "" and has_modal_parts)
        right.append(calls.refused() if refuses else calls.checked())
        calls.change(lambda model, name=name: setattr(model.get_submodule(name), "training", False))
        right.append(calls.run(original=0, variant=1, prepare=None))  # statistics may have changed
    return all(right)


def replaced_parameters_are_seen(calls):
    """Replaces the first parameter by one with other memory, and then by one that differs in its
    strides only, which has the same address and version."""
    names = [name for name, p in calls.module.named_parameters() if p.dim() == 2]
    square = [n for n in names if len(set(calls.module.get_parameter(n).shape)) == 1]
    if not names:
        return None

    def replace(name, change):
        def action(model):
            path, _, key = name.rpartition(".")
            part = model.get_submodule(path)
            setattr(part, key, torch.nn.Parameter(change(getattr(part, key).data)))

        calls.change(action)

    name = (square or names)[0]
    replace(name, lambda p: p * 0.8)
    right = calls.run(original=0, variant=1, prepare=1)
    if square:
        replace(name, lambda p: p.t())
        right = calls.run(original=0, variant=1, prepare=1) and right
    return right and calls.known()


def replaced_parts_are_seen(calls):
    """Replaces the first part, which lives on elsewhere, by a copy with other parameters."""
    parts = [n for n, m in calls.module.named_children() if any(True for _ in m.parameters())]
    if not parts:
        return None
    kept = []

    def replace(model):
        kept.append(model.get_submodule(parts[0]))
        part = copy.deepcopy(kept[-1])
        for parameter in part.parameters():
            parameter.mul_(0.7)
        setattr(model, parts[0], part)

    calls.change(replace)
    return calls.checked(prepare=1) and calls.known()


def other_shapes_are_refused(calls):
    """Calls with a part of each input, if the original can compute that, then as before."""
    inputs = torch.utils._pytree.tree_map_only(torch.Tensor, lambda x: x[:-1], calls.inputs)
    try:
        calls.original(*inputs)
    except (RuntimeError, ValueError, IndexError):
        return None
    return calls.refused(inputs) and calls.refused(inputs) and calls.known()


def autocast_is_refused(calls):
    torch.set_autocast_enabled("cuda", True)
    try:
        right = calls.refused()
    finally:
        torch.set_autocast_enabled("cuda", False)
    return right and calls.known()


def numerics_are_the_variants(calls):
    """Calls with the other TF32 than the variant's, which must be back after the call."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    wanted = calls.exported._hone_SETTINGS["tf32"]
    matmul.allow_tf32, cudnn.allow_tf32 = not wanted, not wanted
    calls.ran["tf32"].clear()
    right = calls.known() and calls.ran["tf32"] == {wanted}
    return right and (matmul.allow_tf32, cudnn.allow_tf32) == (not wanted, not wanted)


def kinds_are_bounded(calls):
    """Makes a new kind when there are as many as may be known."""
    calls.exported._hone_variants[calls.module].max_kinds = 1
    calls.exported.ModelNew.any_shape = True
    right = calls.checked()
    calls.exported.ModelNew.any_shape = False
    return right and calls.checked()


def module_with_hooks(calls):
    """Returns a weak reference to a called module, whose parts have hooks that refer to it."""
    module = copy.deepcopy(calls.module)
    for part in module.children():
        part.register_forward_hook(lambda *_, owner=module: None)
    with torch.no_grad():
        module(*calls.inputs)
    return weakref.ref(module)


def module_is_freed(calls):
    reference = module_with_hooks(calls)
    gc.collect()
    return reference() is None


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
    facts["arguments"] = kernels_get_their_arguments(exported)
    if exported._hone_CUDA:
        return facts
    exported._hone_variants.clear()
    calls = Calls(exported, module, original, inputs)
    facts["program"] = calls.checked(prepare=1)
    facts["again"] = calls.known() and calls.known()
    facts["gradients"] = same_gradients(module, original, inputs)
    prepares = 1 if exported._hone_PARAMETERS else 0
    calls.change(lambda model: [p.mul_(0.9) for p in model.parameters()])
    facts["changed"] = calls.run(original=0, variant=1, prepare=prepares) and calls.known()
    facts["modes"] = modes_are_seen(calls)
    facts["parameters"] = replaced_parameters_are_seen(calls)
    facts["parts"] = replaced_parts_are_seen(calls)
    facts["shapes"] = other_shapes_are_refused(calls)
    facts["autocast"] = autocast_is_refused(calls)
    facts["numerics"] = numerics_are_the_variants(calls)
    facts["bounded"] = kinds_are_bounded(calls)
    facts["freed"] = module_is_freed(calls)
    calls.module = copy.deepcopy(module)
    facts["copied"] = calls.checked(prepare=1) and calls.known()
    return facts


for file in sys.argv[1:]:
    print(json.dumps(check(file)))
