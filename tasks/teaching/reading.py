"""Reads a reference: its statements, and the shapes of what each of them makes in every case.

A reference is TorchScript without branches and loops, as imports and the grammar write it. Its
operators run on the `meta` device, which knows shapes and no contents.
"""

import ast
import math

import torch
from values import Unsupported

OPERATORS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
    ast.MatMult: "matmul", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
}  # fmt: skip


class Statement:
    """One operation. operands: names, numbers, lists and slices. results: one for each case."""

    def __init__(self, name, operator, operands, keywords, is_method):
        self.name = name
        self.operator = operator
        self.operands = operands
        self.keywords = keywords
        self.is_method = is_method
        self.results = []

    def names(self):
        return list(_names_in(self.operands)) + list(_names_in(list(self.keywords.values())))


class Name(str):
    """The name of an argument or of a statement."""


def _names_in(operand):
    if isinstance(operand, Name):
        yield operand
    elif isinstance(operand, (list, tuple)):
        for o in operand:
            yield from _names_in(o)
    elif isinstance(operand, slice):
        yield from _names_in([operand.start, operand.stop, operand.step])


class Reference:
    """arguments: names in order. statements in order. outputs: names. is_tuple: of the result."""

    def __init__(self, source, tensors, cases):
        """tensors: objects with name, shape and dtype. cases: the sizes of each case by name."""
        self.statements = []
        self.by_name = {}
        self.now = {}  # what a name refers to after writes in place
        function = ast.parse(source.strip()).body[0]
        self.arguments = [a.arg for a in function.args.args]
        for line in function.body:
            if isinstance(line, ast.Return):
                self._read_outputs(line.value)
            elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                self._read(line.value, line.targets[0].id)
            elif isinstance(line, ast.Expr) and isinstance(line.value, ast.Call):
                self._read(line.value)
            else:
                raise Unsupported("a statement that is no assignment")
        self.cases = cases
        self.tensors = {}
        for argument, t in zip(self.arguments, tensors):
            self.tensors[argument] = t
        for case in cases:
            self._run(case)

    def _read_outputs(self, value):
        self.is_tuple = isinstance(value, ast.Tuple)
        parts = value.elts if self.is_tuple else [value]
        self.outputs = [self._read(p) for p in parts]
        if not all(isinstance(o, Name) for o in self.outputs):
            raise Unsupported("an output that is no tensor")

    def _read(self, node, name=None):
        """Returns the operand that an expression is; new statements are appended."""
        if isinstance(node, ast.Name):
            if name is not None:
                raise Unsupported("a second name of a tensor")
            return self.now.get(node.id, Name(node.id))
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self._read(e) for e in node.elts]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = self._read(node.operand)
            return self._add(name, "neg", [inner]) if isinstance(inner, Name) else -inner
        if isinstance(node, ast.BinOp):
            operands = [self._read(node.left), self._read(node.right)]
            return self._add(name, OPERATORS[type(node.op)], operands)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            operands = [self._read(node.left), self._read(node.comparators[0])]
            return self._add(name, OPERATORS[type(node.ops[0])], operands)
        if isinstance(node, ast.Subscript):
            return self._add(name, "getitem", [self._read(node.value), self._index(node.slice)])
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "torch":
                return getattr(torch, node.attr)
        if isinstance(node, ast.Call):
            return self._read_call(node, name)
        raise Unsupported(f"an expression: {ast.unparse(node)}")

    def _index(self, node):
        if isinstance(node, ast.Tuple):
            return [self._index(e) for e in node.elts]
        if isinstance(node, ast.Slice):
            return slice(*[None if part is None else self._read(part)
                           for part in (node.lower, node.upper, node.step)])  # fmt: skip
        return self._read(node)

    def _read_call(self, node, name):
        operands = [self._read(a) for a in node.args]
        keywords = {k.arg: self._read(k.value) for k in node.keywords}
        if isinstance(node.func, ast.Name) and node.func.id == "float":
            return float(operands[0])
        if not isinstance(node.func, ast.Attribute):
            raise Unsupported(f"a call of {ast.unparse(node.func)}")
        if isinstance(node.func.value, ast.Name) and node.func.value.id == "torch":
            return self._add(name, node.func.attr, operands, keywords)
        return self._add(name, node.func.attr, [self._read(node.func.value), *operands], keywords,
                         is_method=True)  # fmt: skip

    def _add(self, name, operator, operands, keywords=None, is_method=False):
        name = Name(name or f"part_{len(self.statements)}")
        if operator.endswith("_") and not operator.startswith("_"):
            operator = operator.rstrip("_")
            self._write(operands[0], name)
        statement = Statement(name, operator, operands, keywords or {}, is_method)
        self.statements.append(statement)
        self.by_name[name] = statement
        return name

    def _write(self, written, result):
        """An operation in place is as good as a new value if no other name sees the old one."""
        if written in self.arguments:
            raise Unsupported("an argument that is written")
        is_view = written in self.by_name and self.by_name[written].operator in VIEWS
        if is_view or any(s.operator in VIEWS and written in s.names() for s in self.statements):
            raise Unsupported("a tensor that is written and seen by another name")
        for name, stands_for in list(self.now.items()):
            if stands_for == written:
                self.now[name] = result
        self.now[str(written)] = result

    def _run(self, case):
        known = {}
        for name, t in self.tensors.items():
            shape = [case[s] if isinstance(s, str) else s for s in t["shape"]]
            known[name] = torch.empty(shape, dtype=getattr(torch, t["dtype"]), device="meta")
        for statement in self.statements:
            result = call(statement, known)
            statement.results.append(result)
            known[statement.name] = result


VIEWS = {
    "view", "reshape", "flatten", "unflatten", "unsqueeze", "squeeze", "transpose", "permute", "t",
    "numpy_T", "getitem", "select", "slice", "narrow", "split", "chunk", "unbind", "expand",
    "expand_as", "broadcast_tensors", "contiguous", "diagonal", "to",
}  # fmt: skip


def substituted(operand, known):
    if isinstance(operand, Name):
        return known[operand]
    if isinstance(operand, list):
        return [substituted(o, known) for o in operand]
    if isinstance(operand, slice):
        return slice(*[substituted(o, known) for o in (operand.start, operand.stop, operand.step)])
    return operand


def call(statement, known):
    """Runs a statement on tensors that have no contents."""
    operands = [substituted(o, known) for o in statement.operands]
    keywords = {k: substituted(v, known) for k, v in statement.keywords.items()}
    operator = statement.operator
    if operator == "getitem":
        index = operands[1]
        return operands[0][tuple(index) if isinstance(index, list) else index]
    if all(isinstance(o, (int, float)) for o in operands) and operator in PLAIN:
        return PLAIN[operator](*operands)
    if statement.is_method and hasattr(operands[0], operator):
        return getattr(operands[0], operator)(*operands[1:], **keywords)
    if any(isinstance(o, torch.Tensor) or _holds_tensor(o) for o in operands):
        home = torch.ops.aten if hasattr(torch.ops.aten, operator) else torch
        return getattr(home, operator)(*operands, **keywords)
    with torch.device("meta"):
        return getattr(torch, operator)(*operands, **keywords)


def _holds_tensor(operand):
    return isinstance(operand, list) and any(isinstance(o, torch.Tensor) for o in operand)


PLAIN = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "floor_divide": lambda a, b: a // b, "div": lambda a, b: a / b, "pow": math.pow,
}  # fmt: skip
