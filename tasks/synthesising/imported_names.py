"""Rewrites drawn programs as `hone task import` prints modules, so that a policy which learns from
drawn tasks can read imported ones: a statement for each operator, named after it; parameters named
after modules; sizes N, M, K, and so on.
"""

import ast
import builtins
import dataclasses

SIZES = ("N", "M", "K", "L", "P", "Q", "R")
INPUTS = {
    "x": ("x", "x", "x", "x", "a", "input", "predictions", "features", "hidden_states"),
    "y": ("y", "b", "b", "other", "targets", "residual", "add_input"),
    "i": ("indices", "index", "ids", "targets"),
}
MODULES = (
    "conv", "conv1", "conv2d", "linear", "linear1", "fc", "fc1", "fc2", "gemm", "matmul", "proj",
    "conv_transpose", "conv3d", "conv_transpose2d", "linear_layer", "batch_norm", "instance_norm",
    "norm", "norm1", "group_norm", "layer_norm", "bn", "gn", "ln", "gate", "query", "value", "head",
    "layers_0", "layers_1", "encoder_fc", "block_conv", "net_0", "mlp_2",
)  # fmt: skip
ALONE = (
    "bias",
    "scale",
    "weight",
    "multiplier",
    "offset",
    "gamma",
    "beta",
    "scaling_factor",
    "bias",
    "constant",
    "subtract",
    "scale1",
)
SIGNS = {
    ast.Add: ("add", "+"), ast.Sub: ("sub", "-"), ast.Mult: ("mul", "*"), ast.Div: ("div", "/"),
    ast.Pow: ("pow", "**"),
}  # fmt: skip
# Operators whose dimensions and keepdim imports pass by position.
REDUCES = ("sum", "mean", "amax", "amin", "logsumexp")
ALONG = ("softmax", "log_softmax", "cumsum", "cumprod", "cummax", "sort")


class _Names:
    """Gives out names, each once. A name that Python has taken gets a number at once."""

    def __init__(self):
        self.taken = set()

    def fresh(self, stem):
        number, name = 0, stem
        while name in self.taken or (hasattr(builtins, name) and number == 0):
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name


def _in_parentheses(text):
    """Returns an operand in parentheses if it is a number with a sign."""
    return f"({text})" if "-" in text else text


class _Statements:
    """Takes expressions apart. known: new names by old ones."""

    def __init__(self, names, known):
        self.names, self.known, self.lines = names, known, []

    def add(self, name, text):
        """Adds the statements that compute an expression, which had a name."""
        self.known[name] = self._operand(ast.parse(text, mode="eval").body)

    def _emit(self, stem, text):
        name = self.names.fresh(stem)
        self.lines.append(f"{name} = {text}")
        return name

    def _operand(self, node):
        if isinstance(node, ast.Name):
            return self.known.get(node.id, node.id)
        if isinstance(node, ast.BinOp):
            left, right = (_in_parentheses(self._operand(n)) for n in (node.left, node.right))
            stem, sign = SIGNS[type(node.op)]
            if stem == "sub" and isinstance(node.left, ast.Constant):
                stem = "rsub"
            return self._emit(stem, f"{left} {sign} {right}")
        if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            return self._emit("neg", f"torch.neg({self._operand(node.operand)})")
        if isinstance(node, ast.Compare):
            left, right = self._operand(node.left), self._operand(node.comparators[0])
            return self._emit("gt", f"{left} > {right}")
        if isinstance(node, ast.Subscript):
            index, value = ast.unparse(node.slice).strip("()"), self._operand(node.value)
            if isinstance(node.slice, ast.Constant):
                return f"{value}[{index}]"  # one of several results
            return self._emit("select", f"{value}[{index}]")
        if isinstance(node, ast.Call):
            return self._call(node)
        return ast.unparse(node)

    def _call(self, node):
        operator = node.func.attr
        is_method = not (isinstance(node.func.value, ast.Name) and node.func.value.id == "torch")
        home = self._operand(node.func.value) if is_method else "torch"
        operands = [self._operand(a) for a in node.args]
        keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
        if operator in (*REDUCES, *ALONG) and "dim" in keywords:
            operands.append(keywords.pop("dim"))
        if operator in REDUCES and keywords.pop("keepdim", "False") == "True":
            operands.append("True")
        operands += [f"{k}={v}" for k, v in keywords.items()]
        return self._emit(operator, f"{home}.{operator}({', '.join(operands)})")


def _argument_names(p, names, random):
    known, module = {}, None
    for t in p.inputs:
        known[t["name"]] = names.fresh(random.choice(INPUTS[t["name"][0]]))
    for t in p.parameters:
        kind = t["name"][0]
        if kind in "wg":
            module = random.choice(MODULES)
            known[t["name"]] = names.fresh(f"{module}_weight")
        elif kind in "brv" and module is not None:
            ends = {"b": "bias", "r": "running_mean", "v": "running_var"}
            known[t["name"]] = names.fresh(f"{module}_{ends[kind]}")
            module = None if kind == "v" else module
        else:
            known[t["name"]] = names.fresh(random.choice(ALONE))
    return known


def rename_as_imported(p, random):
    """Changes the names and statements of a Program. random: a random.Random."""
    names = _Names()
    known = _argument_names(p, names, random)
    statements = _Statements(names, known)
    for statement in p.statements:
        name, text = statement.split(" = ", 1)
        statements.add(name, text)
    sizes = {old: SIZES[k] if k < len(SIZES) else old for k, old in enumerate(p.timed)}

    def resized(shape):
        return [sizes.get(d, d) if isinstance(d, str) else d for d in shape]

    p.statements = statements.lines
    p.outputs = [dataclasses.replace(v, name=known[v.name]) for v in p.outputs]
    p.values = [
        dataclasses.replace(v, name=known.get(v.name, v.name), shape=tuple(resized(v.shape)))
        for v in p.values
    ]
    for t in p.inputs + p.parameters:
        t["name"], t["shape"] = known[t["name"]], resized(t["shape"])
        t["init"] = tuple(sizes.get(a, a) if isinstance(a, str) else a for a in t["init"])
    p.timed = {sizes[k]: v for k, v in p.timed.items()}
    p.small = tuple({sizes[k]: v for k, v in case.items()} for case in p.small)
