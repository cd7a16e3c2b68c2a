"""Prints graphs of ATen calls as TorchScript.

`Reference` prints an exported program as a task's reference; `print_call` prints one call.
"""

import keyword
import math
import operator
import re

import torch

# Operators that are printed as infix operators, by their ATen names.
INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitwise_and": "&",
    "__and__": "&",
    "bitwise_or": "|",
    "__or__": "|",
    "bitwise_xor": "^",
    "pow": "**",
}
# Operators on shapes and conversions, which are easier to read as methods. In-place operators are
# printed as methods, too.
METHODS = {
    "view",
    "reshape",
    "transpose",
    "permute",
    "expand",
    "expand_as",
    "unsqueeze",
    "squeeze",
    "contiguous",
    "flatten",
    "t",
    "repeat",
    "masked_fill",
    "clone",
    "type_as",
    "view_as",
    "size",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "unfold",
    "movedim",
    "swapaxes",
    "unbind",
    "split",
    "chunk",
    "split_with_sizes",
}
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
# Operators that return their first argument in eval mode.
IDENTITIES = {
    "detach",
    "detach_",
    "alias",
    "lift",
    "lift_fresh",
    "dropout",
    "dropout_",
    "feature_dropout",
    "feature_dropout_",
    "alpha_dropout",
    "alpha_dropout_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "native_dropout",
}
# Operators that are printed as equivalent ones, by their ATen names.
SHORTER = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_unsafe_view": "view",
    "_reshape_alias": "view",
    "lift_fresh_copy": "clone",
}
# Operators that draw random numbers only with certain arguments, which the judge's rules check.
MAY_DRAW = {"scaled_dot_product_attention", "rrelu", "gru", "lstm", "rnn_tanh", "rnn_relu"}
# The end of a slice that has no end.
NO_SIZE = 2**63 - 1
# Names that the reference's own values cannot have.
RESERVED = (
    set(keyword.kwlist)
    | set(dir(__builtins__) if not isinstance(__builtins__, dict) else __builtins__)
    | {"torch", "F", "math", "forward", "prepare", "launch", "Tensor", "Tuple", "List", "Optional"}
)


class Unprintable(Exception):
    """A graph has a part that TorchScript or a task cannot express; the message is for users."""


def identifier(text, taken):
    """Returns a valid TorchScript name that resembles `text` and adds it to `taken`.

    The name is none of those in `taken` before.
    """
    name = re.sub(r"[^0-9A-Za-z_]+", "_", text).strip("_") or "value"
    if name[0].isdigit():
        name = "x" + name
    base = name + "_" if name in RESERVED else name
    name, count = base, 1
    while name in taken:
        name, count = f"{base}_{count}", count + 1
    taken.add(name)
    return name


def number(value):
    """Returns a number as TorchScript. Raises Unprintable if it is complex."""
    if isinstance(value, float) and not math.isfinite(value):
        return 'float("nan")' if math.isnan(value) else f'float("{"-" if value < 0 else ""}inf")'
    if isinstance(value, complex):
        raise Unprintable("it computes with complex constants")
    return repr(value)


def literal(value, show, schema_type=""):
    """Returns an argument of a call as TorchScript.

    show: a function that prints values that stand for a tensor or a size, and returns None for any
    other value. schema_type: the argument's type in the operator's schema. Raises Unprintable if
    TorchScript has no literal for the value.
    """
    shown = show(value)
    if shown is not None:
        return shown
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item, show, schema_type) for item in value) + "]"
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, (int, float, complex)):
        return number(float(value)) if "float" in schema_type else number(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, torch.dtype):
        return str(value)
    if isinstance(value, torch.memory_format):
        return str(value)
    raise Unprintable(f"it passes a {type(value).__name__} to an operator")


def is_identity(name, args, kwargs, schema):
    """Returns True if a call returns its first argument. Raises Unprintable for active dropout."""
    if name not in IDENTITIES:
        return False
    if "dropout" not in name:
        return True
    given = dict(zip([a.name for a in schema.arguments], args)) | kwargs
    if given.get("train", given.get("training", True)):
        raise Unprintable("it draws random numbers: dropout stays on in eval mode")
    return True


def grouped(text):
    """Returns an operand of an infix operator.

    The text is put in parentheses unless it is a name, a number, a call or an indexed value.
    """
    return (
        text
        if re.fullmatch(r"[\w.]+(\([^()]*\)|\[[^\[\]]*\])*", text) and not text[0] == "-"
        else f"({text})"
    )


def print_subscript(self_text, dim, inside):
    """Returns a tensor indexed with `inside` in its dimension `dim`."""
    return f"{self_text}[{':, ' * dim}{inside}]"


def print_call(target, args, kwargs, show, rank_of):
    """Returns a call of an ATen operator as a TorchScript expression.

    target: the torch._ops.OpOverload. show: as in `literal`. rank_of: a function that returns the
    rank of an argument that stands for a tensor, or None if it is unknown. Raises Unprintable if
    the operator is none of ATen's or draws random numbers.
    """
    schema = target._schema
    name = schema.name.split("::")[1]
    if not schema.name.startswith("aten::"):
        raise Unprintable(f"it calls the operator {schema.name}, which is no ATen operator")
    if is_identity(name, args, kwargs, schema):
        return literal(args[0], show)
    if torch.Tag.nondeterministic_seeded in target.tags and name not in MAY_DRAW:
        raise Unprintable(f"it draws random numbers: aten::{name}")
    if name == "lift_fresh_copy" and literal(args[0], show).startswith("torch.tensor("):
        return literal(args[0], show)
    name = SHORTER.get(name, name)
    types = [str(a.type) for a in schema.arguments]
    texts = [literal(a, show, t) for a, t in zip(args, types)]
    names = [a.name for a in schema.arguments]
    given = dict(zip(names, args)) | kwargs
    if name in ("to", "_to_copy"):
        if given.get("dtype") is None:
            return (
                f"{grouped(texts[0])}.clone()"
                if name == "_to_copy" or given.get("copy")
                else texts[0]
            )
        return f"{grouped(texts[0])}.to({given['dtype']})"
    if name == "sym_size":
        return f"{grouped(texts[0])}.size({texts[1]})"
    if name == "sym_numel":
        return f"{grouped(texts[0])}.numel()"
    if name in ("softmax", "log_softmax") and target._schema.name.startswith("aten::_"):
        return f"torch.{name}({texts[0]}, {texts[1]})"
    if name in INFIX and len(args) == 2 and not kwargs:
        return f"{grouped(texts[0])} {INFIX[name]} {grouped(texts[1])}"
    if name == "neg":
        return f"-{grouped(texts[0])}"
    if name == "rsub" and len(args) == 2 and not kwargs:
        return f"{grouped(texts[1])} - {grouped(texts[0])}"
    if name in ("select", "slice") and not kwargs:
        rank, dim = rank_of(args[0]), args[1] if len(args) > 1 else 0
        if rank is not None and isinstance(dim, int):
            dim = dim % rank
            if name == "select":
                return print_subscript(grouped(texts[0]), dim, texts[2])
            start = "" if len(args) < 3 or args[2] in (None, 0) else texts[2]
            end = (
                ""
                if len(args) < 4
                or (isinstance(args[3], int) and args[3] == NO_SIZE)
                or args[3] is None
                else texts[3]
            )
            step = f":{texts[4]}" if len(args) > 4 and args[4] != 1 else ""
            if not start and not end and not step:
                return texts[0]
            return print_subscript(grouped(texts[0]), dim, f"{start}:{end}{step}")
    # Other operators are printed with their schema's arguments, without trailing ones that have
    # their defaults and without those that name a device.
    shown = []
    for position, argument in enumerate(schema.arguments):
        if (
            argument.name in ("device", "pin_memory", "layout", "generator")
            or argument.name not in given
        ):
            continue
        value = given[argument.name]
        if argument.name in ("cudnn_enabled", "cudnn_enable"):
            value = True  # the reference must not depend on whether the importer has cuDNN
        text = literal(value, show, types[position])
        keep = not argument.has_default_value() or not same_default(value, argument.default_value)
        shown.append((argument, text, keep))
    while shown and not shown[-1][2]:
        shown.pop()
    positional = True
    parts = []
    expected = iter(schema.arguments)
    for argument, text, keep in shown:
        positional = positional and not argument.kwarg_only and next(expected).name == argument.name
        if positional:
            parts.append(text)
        elif keep:
            parts.append(f"{argument.name}={text}")
    is_method = name in METHODS or (name.endswith("_") and not name.endswith("__"))
    if is_method and schema.arguments and str(schema.arguments[0].type) == "Tensor":
        return f"{grouped(parts[0])}.{name}({', '.join(parts[1:])})"
    return f"torch.{name}({', '.join(parts)})"


def same_default(value, default):
    """Returns True if an argument has its default value, of the same type."""
    return (
        type(value) in (int, float, bool, str, type(None))
        and value == default
        and isinstance(value, bool) == isinstance(default, bool)
    )


def writes_back(node):
    """Returns True for a write that stores in a buffer the values that the graph has written there.

    Graphs of modules with state end with such writes, which a reference does not need.
    """
    return (
        node.target._schema.name == "aten::copy_"
        and node.args[0].op == "placeholder"
        and not node.users
    )


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
                self.shown[node] = f"torch.tensor({number(value.item())}, dtype={value.dtype})"
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
        """Returns the nodes that a result or a write depends on, and the writes."""
        live = set(results)
        for node in reversed(graph.nodes):
            is_write = (
                isinstance(node.target, torch._ops.OpOverload)
                and node.target._schema.is_mutable
                and not writes_back(node)
            )
            if is_write or node in live or isinstance(node.target, torch._ops.HigherOrderOperator):
                live.add(node)
                live.update(node.all_input_nodes)
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
        """Returns a node's expression, or None if the node needs no line of its own."""
        target = node.target
        if target is operator.getitem:
            if isinstance(node.args[0], torch.fx.Node) and node.args[0].target in (
                torch.ops.higher_order.wrap_with_set_grad_enabled,
            ):
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
            return print_call(target, node.args, node.kwargs, self.show, self.rank_of)
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
        raise Unprintable(f"it calls {name}")

    def inline(self, module, node):
        """Prints the body of a block that only switches gradients off in place of the block."""
        if node.target is not torch.ops.higher_order.wrap_with_set_grad_enabled:
            raise Unprintable(
                f"it has control flow that is kept in the graph ({node.target.name()})"
            )
        body = getattr(module, node.args[1].target)
        for inner, outer in zip(
            [n for n in body.graph.nodes if n.op == "placeholder"], node.args[2:]
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
        kind = (
            "Tensor"
            if len(self.outputs) == 1
            else f"Tuple[{', '.join(['Tensor'] * len(self.outputs))}]"
        )
        result = ", ".join(self.outputs)
        lines = [f"def forward({', '.join(f'{a}: Tensor' for a in arguments)}) -> {kind}:"]
        lines += [f"    {name} = {name}.clone()" for name in cloned]
        lines += [f"    {line}" for line in self.lines]
        return "\n".join([*lines, f"    return {result}", ""])


def runnable(text):
    """Returns a program for PyTorch's own front end, with torch.ops.aten.NAME for torch.NAME.

    Hone's front end resolves torch.NAME as the operator aten::NAME, PyTorch's own the longer name.
    """
    kept = "|".join(
        [
            "float32",
            "float64",
            "float16",
            "bfloat16",
            "int8",
            "uint8",
            "int16",
            "int32",
            "int64",
            "bool",
            "complex64",
            "complex128",
            "contiguous_format",
            "preserve_format",
            "channels_last",
            "channels_last_3d",
            "ops",
            "strided",
            "tensor",
        ]
    )
    return re.sub(rf"\btorch\.(?!(?:{kept})\b)", "torch.ops.aten.", text)


def compile_source(text):
    """Compiles a reference. Returns the compilation unit and the sorted kinds of its operators."""
    unit = torch.jit.CompilationUnit(runnable(text))
    kinds = set()

    def visit(block):
        for node in block.nodes():
            kinds.add(node.kind())
            for inner in node.blocks():
                visit(inner)

    visit(unit.forward.graph)
    return unit, sorted(kinds)
