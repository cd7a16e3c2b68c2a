"""Prints exported programs as references of tasks."""

import operator
import re

import torch
from expression_printer import ExpressionPrinter
from torchscript_text import (
    USES_AUTOCAST,
    Unprintable,
    grouped,
    identifier,
    literal,
    number,
    result_type,
)

# Python's operators on sizes that occur in graphs.
PYTHON_OPERATORS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.truediv: "/",
    operator.pow: "**",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}


# Blocks that are replaced by their bodies, with the position of the body's first argument.
INLINED = {
    torch.ops.higher_order.wrap_with_set_grad_enabled: 2,
    torch.ops.higher_order.wrap_with_autocast: 5,
}


def writes_back(node):
    """Returns True for a write that stores in a buffer the values that the graph has written there.

    Graphs of modules with state end with such writes, which a reference does not need.
    """
    return (
        node.target._schema.name == "aten::copy_"
        and node.args[0].op == "placeholder"
        and not node.users
    )


def written_by(node):
    """Returns the nodes whose tensors a call writes into."""
    return [n for argument, n in aliased_arguments(node) if argument.alias_info.is_write]


def aliased_arguments(node):
    """Returns the arguments of a call whose memory its results may share, with their nodes."""
    schema = node.target._schema.arguments
    given = {a.name: value for a, value in zip(schema, node.args)} | node.kwargs
    return [
        (argument, other)
        for argument in schema
        if argument.alias_info is not None and argument.name in given
        for other in torch.utils._pytree.tree_leaves(given[argument.name])
        if isinstance(other, torch.fx.Node)
    ]


def shared_memory(graph):
    """Returns a number for each node of a graph: the same if their tensors may share memory.

    The results of a block, and of an operator that is not one of ATen's, share it with all
    arguments.
    """
    number = {}

    def same(a, b):
        if number[a] != number[b]:
            old, new = number[a], number[b]
            for node, value in number.items():
                if value == old:
                    number[node] = new

    for i, node in enumerate(graph.nodes):
        number[node] = i
        if isinstance(node.target, torch._ops.OpOverload):
            others = [other for _, other in aliased_arguments(node)]
        else:
            others = node.all_input_nodes
        for other in others:
            same(node, other)
    return number


def scalar(value):
    """Returns a tensor without dimensions as an expression."""
    # torch.tensor() of a Python number has only the precision of float32 in TorchScript.
    if value.dtype == torch.float64:
        return f"torch.full([], {number(value.item())}, dtype=torch.float64)"
    return f"torch.tensor({number(value.item())}, dtype={value.dtype})"


class Reference:
    """The source of `forward` for an exported program.

    inputs, parameters: names in the source by the names of the graph's placeholders, in order.
    outputs: the expressions that `forward` returns.
    left_out: notes on outputs that are no tensors and are left out.

    Raises Unprintable if TorchScript or a task cannot express the graph.
    """

    def __init__(self, program, constants, inline):
        """Prints the graph.

        constants: the tensors that are no user inputs, by placeholder. inline: the placeholders
        among them that are scalars, which are printed as numbers.
        """
        self.lines = []
        self.taken = set()
        self.shown = {}
        self.ranks = {}
        self.left_out = []
        self.printer = ExpressionPrinter(self.show, self.rank_of)
        self.program = program
        signature = program.graph_signature
        kinds = {spec.arg.name: spec for spec in signature.input_specs}
        self.inputs, self.parameters = {}, {}
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        results = self.tensor_results()
        used = self.live_nodes(program.graph, results)
        for node in placeholders:
            if kinds[
                node.name
            ].kind == torch.export.graph_signature.InputKind.USER_INPUT and isinstance(
                node.meta.get("val"), torch.Tensor
            ):
                self.inputs[node.name] = self.shown[node] = identifier(node.name, self.taken)
        first_of = {}
        for node in placeholders:
            if node in self.shown or node not in used:
                continue
            if node.name in inline:
                value = constants[node.name]
                self.shown[node] = scalar(value)
                continue
            if node.name not in constants:
                continue  # the module's argument is a number, which export has as a constant
            same = first_of.setdefault(id(constants[node.name]), node)
            if same is not node:
                self.shown[node] = self.shown[same]
                continue
            target = kinds[node.name].target or node.name
            self.parameters[node.name] = self.shown[node] = identifier(
                target.replace(".", "_"), self.taken
            )
        for node in placeholders:
            value = node.meta.get("val")
            self.ranks[node] = value.dim() if isinstance(value, torch.Tensor) else None
        self.print_block(program.graph_module, used)
        self.outputs = [self.shown[result] for result in results]

    def tensor_results(self):
        """Returns the nodes of the module's tensor outputs, and adds notes on others to `left_out`.

        Raises Unprintable if there is no tensor.
        """
        results = []
        output = next(n for n in self.program.graph.nodes if n.op == "output")
        for position, (result, spec) in enumerate(
            zip(output.args[0], self.program.graph_signature.output_specs), 1
        ):
            if spec.kind != torch.export.graph_signature.OutputKind.USER_OUTPUT:
                continue
            if isinstance(result, torch.fx.Node) and isinstance(
                result.meta.get("val"), torch.Tensor
            ):
                results.append(result)
            else:
                self.left_out.append(f"output {position} is no tensor and is left out")
        if not results:
            raise Unprintable("it returns no tensor")
        return results

    @staticmethod
    def live_nodes(graph, results):
        """Returns the nodes that a result depends on.

        A write counts if an argument of the module, or a tensor that a live node uses, may share
        memory with what it writes.
        """
        memory = shared_memory(graph)
        live, touched = set(), {memory[n] for n in graph.nodes if n.op == "placeholder"}

        def add(nodes):
            live.update(nodes)
            touched.update(memory[n] for n in nodes)

        add(results)
        before = -1
        while len(live) > before:  # an earlier pass may have missed a write to a live node
            before = len(live)
            for node in reversed(graph.nodes):
                is_write = (
                    isinstance(node.target, torch._ops.OpOverload)
                    and node.target._schema.is_mutable
                    and not writes_back(node)
                    and any(memory[n] in touched for n in written_by(node))
                )
                is_block = isinstance(node.target, torch._ops.HigherOrderOperator)
                if is_write or is_block or node in live:
                    add([node, *node.all_input_nodes])
        return live

    def show(self, value):
        """Returns a node as printed, or None for any other value; see `literal`."""
        if isinstance(value, torch.fx.Node):
            if value not in self.shown:
                raise Unprintable(f"it uses {value.name}, which is no tensor")
            return self.shown[value]
        return None

    def rank_of(self, value):
        """Returns the rank of a node's tensor, or None if it is unknown."""
        return self.ranks.get(value)

    def print_block(self, module, used):
        """Appends a line per operator call of a graph module to `lines`, for nodes in `used`."""
        for node in module.graph.nodes:
            if node.op != "call_function" or node not in used:
                continue
            value = node.meta.get("val")
            self.ranks[node] = value.dim() if isinstance(value, torch.Tensor) else None
            expression = self.print_node(module, node)
            if expression is None:
                continue
            if expression in self.shown.values() or node.target is operator.getitem:
                self.shown[node] = expression
                continue
            mutates = (
                isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable
            )
            if mutates and self.writes_first_argument(node):
                self.lines.append(expression)
                self.shown[node] = self.show(node.args[0])
                continue
            name = identifier(re.sub(r"^sym_size(_int)?", "size", node.name), self.taken)
            self.lines.append(f"{name} = {expression}")
            self.shown[node] = name

    @staticmethod
    def writes_first_argument(node):
        """Returns True if a call is an in-place operator, such as aten::add_."""
        first = node.target._schema.arguments[0]
        return (
            first.alias_info is not None
            and first.alias_info.is_write
            and node.target._schema.name.endswith("_")
        )

    def print_node(self, module, node):
        """Returns a node's expression, or None if the node needs no separate line."""
        target = node.target
        if target is operator.getitem:
            if isinstance(node.args[0], torch.fx.Node) and node.args[0].target in INLINED:
                return self.shown[(node.args[0], node.args[1])]
            if "native_dropout" in str(node.args[0].target):
                return self.shown[node.args[0]]
            return f"{self.show(node.args[0])}[{node.args[1]}]"
        if isinstance(target, torch._ops.HigherOrderOperator):
            return self.inline(module, node)
        if isinstance(target, torch._ops.OpOverload):
            name = target._schema.name
            if name.startswith("aten::_assert") or name.startswith("aten::sym_constrain"):
                return None
            if "dropout" in name:
                self.left_out.append("dropout is left out, as in eval mode")
            return self.printer.print_call(target, node.args, node.kwargs)
        operands = [literal(a, self.show) for a in node.args]
        if target in PYTHON_OPERATORS:
            return f"{grouped(operands[0])} {PYTHON_OPERATORS[target]} {grouped(operands[1])}"
        if target is operator.neg:
            return f"-{grouped(operands[0])}"
        calls = {
            "sym_float": "float",
            "sym_int": "int",
            "sym_max": "max",
            "sym_min": "min",
            "ceil": "math.ceil",
            "floor": "math.floor",
            "sym_sqrt": "math.sqrt",
        }
        name = getattr(target, "__name__", str(target))
        if name.removeprefix("_") in calls:
            return f"{calls[name.removeprefix('_')]}({', '.join(operands)})"
        if name in ("_add_batch_dim", "_remove_batch_dim"):
            raise Unprintable("it uses torch.vmap, which a graph of operators cannot express")
        raise Unprintable(f"it calls {name}")

    def inline(self, module, node):
        """Prints the body of a block that does not change the results, instead of the block:
        one that switches gradients or autocast off."""
        first = INLINED.get(node.target)
        if first is None:
            raise Unprintable(
                f"it has control flow that is kept in the graph ({node.target.name()})"
            )
        if node.target is torch.ops.higher_order.wrap_with_autocast and node.args[2]:
            raise Unprintable(USES_AUTOCAST)
        body = getattr(module, node.args[first - 1].target)
        for inner, outer in zip(
            [n for n in body.graph.nodes if n.op == "placeholder"], node.args[first:]
        ):
            self.shown[inner] = self.show(outer)
            self.ranks[inner] = self.ranks.get(outer)
        results = next(n for n in body.graph.nodes if n.op == "output").args[0]
        self.print_block(body, self.live_nodes(body.graph, results))
        for position, result in enumerate(results):
            self.shown[(node, position)] = self.show(result)
        return None

    def text(self, cloned=()):
        """Returns the source. It first copies the arguments named in `cloned`.

        Those are the arguments that the graph writes into.
        """
        arguments = list(self.inputs.values()) + list(self.parameters.values())
        kind = result_type(self.outputs)
        result = ", ".join(self.outputs)
        lines = [f"def forward({', '.join(f'{a}: Tensor' for a in arguments)}) -> {kind}:"]
        lines += [f"    {name} = {name}.clone()" for name in cloned]
        lines += [f"    {line}" for line in self.lines]
        return "\n".join([*lines, f"    return {result}", ""])
