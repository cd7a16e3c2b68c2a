"""What calls cost, estimated from their graphs, and how much of that a check and a CPU device have."""

import math

import torch

RUN_BYTES = 1 << 28  # inputs and what is computed from them, that are held for a check
MODEL_BYTES = 1 << 30  # parameters and buffers that are made here
RUN_OPERATIONS = 4 * 10**9  # floating-point operations of one call in a check
CPU_OPERATIONS = 10**11  # above that a call takes longer than a CPU device waits
CPU_CALL_BYTES = (
    3 << 30
)  # held by a call that a CPU device shall run, in float64; its process has 4 GiB
CPU_ARENA_BYTES = 7 << 27  # inputs and parameters there, in float64; its arena has 1 GiB
PATIENCE = 1 / 64  # how much more than usual a check may take where the module leaves no choice
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
    """Operations and bytes of one call, estimated from the graph; `values` gives sizes to symbols."""

    known = {}  # substituting is slow, and few expressions are different

    def extent(e):
        if isinstance(e, int):
            return e
        expression = e.node.expr
        if expression not in known:
            number = expression.subs(values)
            known[expression] = (
                int(number) if number.is_number else 1
            )  # how many: only the contents tell
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
            held += sum(math.prod(extent(e) for e in v.shape) * v.element_size() for v in results)
        shapes = [
            s for s in map(shape_of, torch.utils._pytree.tree_leaves(node.args)) if s is not None
        ]
        operations += (
            count * factor(name, shapes, count) if shapes and node.op == "call_function" else count
        )
    return operations, held


def factor(name, shapes, count):
    """Operations for each element of the result."""
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
    """Whether a check runs so much, where it may take 1 / `times` as long as usual. Memory it has 16 times as much at most."""
    return operations * times <= RUN_OPERATIONS and held * max(times, 1 / 16) <= RUN_BYTES
