"""Estimates the cost of calls from their graphs, and sets limits for checks and CPU devices."""

import math

import torch

# Limit on the bytes of inputs, and of all results of a call, in a check.
RUN_BYTES = 1 << 28
# Limit on the bytes of parameters and buffers of a module that is made with real tensors.
MODEL_BYTES = 1 << 30
# Limit on the floating-point operations of one call in a check.
RUN_OPERATIONS = 4 * 10**9
# Limit on the operations of one call on a CPU device, which does not wait for longer calls.
CPU_OPERATIONS = 10**11
# Limit on the bytes of one call's results on a CPU device, in float64. Its process has 4 GiB.
CPU_CALL_BYTES = 3 << 30
# Limit on the bytes of inputs and parameters on a CPU device, in float64. Its arena has 1 GiB.
CPU_ARENA_BYTES = 7 << 27
# The argument `times` of `is_affordable` for modules that cannot be checked at a lower cost.
PATIENCE = 1 / 64
# Operators whose results count as views, which have no separate memory.
VIEWS = {
    "view",
    "reshape",
    "transpose",
    "permute",
    "expand",
    "unsqueeze",
    "squeeze",
    "t",
    "select",
    "slice",
    "split",
    "chunk",
    "unbind",
    "detach",
    "flatten",
    "unfold",
}


def cost(program, values):
    """Estimates one call of an exported program: returns (floating-point operations, bytes).

    `values` maps the graph's symbols to sizes. The bytes are those of the inputs and of all results
    but views, as if none were freed during the call.
    """
    known = {}  # substitution is slow, and few expressions differ

    def extent(e):
        if isinstance(e, int):
            return e
        expression = e.node.expr
        if expression not in known:
            number = expression.subs(values)
            # An extent that depends on the tensors' values counts as 1.
            known[expression] = int(number) if number.is_number else 1
        return known[expression]

    def shape_of(node):
        value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
        return [extent(e) for e in value.shape] if isinstance(value, torch.Tensor) else None

    operations = held = 0
    given = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        if node.op == "placeholder" and node.name not in given:
            continue
        value = node.meta.get("val")
        results = [
            v
            for v in (value if isinstance(value, (list, tuple)) else [value])
            if isinstance(v, torch.Tensor)
        ]
        count = sum(math.prod(extent(e) for e in v.shape) for v in results)
        name = (
            node.target._schema.name.split("::")[1]
            if isinstance(node.target, torch._ops.OpOverload)
            else ""
        )
        if name not in VIEWS:
            held += sum(math.prod(extent(e) for e in v.shape) * bytes_held(v) for v in results)
        shapes = [
            s for s in map(shape_of, torch.utils._pytree.tree_leaves(node.args)) if s is not None
        ]
        operations += (
            count * factor(name, shapes, count) if shapes and node.op == "call_function" else count
        )
    return operations, held


def bytes_held(tensor):
    """Returns the bytes of an element. Operators on a CPU compute short types in float32."""
    return max(4, tensor.element_size()) if tensor.is_floating_point() else tensor.element_size()


def factor(name, shapes, count):
    """Returns the operations per element of an operator's result.

    name: the operator's ATen name. shapes: those of its tensor arguments, at least one. count:
    elements of the result.
    """
    if name in ("linear", "matmul", "mm", "bmm", "mv", "dot"):
        return 2 * (shapes[0][-1] if shapes[0] else 1)
    if name in ("addmm", "baddbmm") and len(shapes) > 1:
        return 2 * shapes[1][-1]
    if name.startswith("conv_transpose") and len(shapes) > 1:
        return 2 * math.prod(shapes[0]) * math.prod(shapes[1][1:]) / max(count, 1)
    if name.startswith("conv") and len(shapes) > 1:
        return 2 * math.prod(shapes[1][1:])
    if name in ("gru", "lstm", "rnn_tanh", "rnn_relu"):
        steps = math.prod(shapes[0][:-1])
        return 2 * steps * sum(math.prod(s) for s in shapes[2:] if len(s) == 2) / max(count, 1)
    if name in ("scaled_dot_product_attention", "einsum", "cdist", "bilinear"):
        return 4 * max(max(s) for s in shapes if s) if any(shapes) else 1
    if name.startswith(
        (
            "max_pool",
            "avg_pool",
            "cumsum",
            "softmax",
            "layer_norm",
            "batch_norm",
            "group_norm",
            "sort",
        )
    ):
        return 10
    return max(1, max(math.prod(s) for s in shapes) / max(count, 1))


def is_affordable(operations, held, times=1.0):
    """Returns True if a check can run `times` calls of this cost.

    With `times` below 1, the limit on operations is 1 / `times` times the usual one, and that on
    bytes at most 16 times.
    """
    return operations * times <= RUN_OPERATIONS and held * max(times, 1 / 16) <= RUN_BYTES
