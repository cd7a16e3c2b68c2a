"""A reference as a list of statements with one operator each, which mutations edit.

Expressions are flattened and values that are assigned again get new names, so every value has one
definition. Loops and branches stay as they are.
"""

import ast
import copy
import re

import torch
from operators import Aten, names_of, outputs_of

PLAIN_CALLS = {"float", "int", "len", "bool", "range"}


class Statement:
    """targets = value, or, if `value` is None, the statement that `text` holds."""

    def __init__(self, targets, value, line, text=""):
        self.targets, self.value, self.line, self._text = targets, value, line, text

    @property
    def text(self):
        if self.value is None:
            return self._text
        return f"{', '.join(self.targets)} = {ast.unparse(self.value)}"

    def names(self):
        """Returns the names that the statement reads."""
        tree = ast.parse(self._text) if self.value is None else self.value
        return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}


class Renaming(ast.NodeTransformer):
    def __init__(self, names):
        self._names = names

    def visit_Name(self, node):
        return ast.copy_location(ast.Name(self._names.get(node.id, node.id), node.ctx), node)


class Substitution(ast.NodeTransformer):
    """Replaces names by expressions."""

    def __init__(self, expressions):
        self._expressions = expressions

    def visit_Name(self, node):
        text = self._expressions.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body


def substituted(node, expressions):
    """Returns the text of an expression with names replaced by other expressions."""
    return ast.unparse(Substitution(expressions).visit(copy.deepcopy(node)))


class Flattening:
    """Reads the statements of a function."""

    def __init__(self, arguments):
        self.statements = []
        self._now = {name: name for name in arguments}  # the value that a name has
        self._taken = set(arguments) | {"torch", "math"}

    def _fresh(self, name):
        made, count = name, 1
        while made in self._taken:
            count += 1
            made = f"{name}_{count}"
        self._taken.add(made)
        return made

    def add(self, line):
        """Reads an assignment, or any other statement but `return`."""
        if isinstance(line, ast.Assign) and len(line.targets) == 1:
            target = line.targets[0]
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            if all(isinstance(t, ast.Name) for t in targets):
                self._assign([t.id for t in targets], line.value)
                return
        renamed = Renaming(self._now).visit(copy.deepcopy(line))
        for node in ast.walk(renamed):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self._now.setdefault(node.id, node.id)
                self._taken.add(node.id)
        self.statements.append(Statement([], None, line.lineno, ast.unparse(renamed)))

    def _assign(self, names, value):
        operation = self._operation(value)
        targets = [self._fresh(name) for name in names]
        self._now.update(zip(names, targets))
        self.statements.append(Statement(targets, operation, value.lineno))

    def atom(self, node):
        """Returns a name or a constant for an expression; adds the statements that it needs."""
        if isinstance(node, ast.Name):
            return ast.Name(self._now.get(node.id, node.id))
        if isinstance(node, ast.Constant) or node is None:
            return node
        if isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
            return node
        if isinstance(node, ast.Attribute):
            return ast.Attribute(self.atom(node.value), node.attr)
        if isinstance(node, (ast.List, ast.Tuple)):
            return type(node)([self.atom(e) for e in node.elts], ast.Load())
        if isinstance(node, ast.Slice):
            parts = [self.atom(p) for p in (node.lower, node.upper, node.step)]
            return ast.Slice(*parts)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in PLAIN_CALLS:
                return self._operation(node)
        name = self._fresh("part")
        self.statements.append(Statement([name], self._operation(node), node.lineno))
        return ast.Name(name)

    def _operation(self, node):
        """Returns an expression whose operands are atoms."""
        if isinstance(node, ast.Call):
            func = node.func
            if isinstance(func, ast.Attribute):
                func = ast.Attribute(self.atom(func.value), func.attr)
            keywords = [ast.keyword(k.arg, self.atom(k.value)) for k in node.keywords]
            return ast.Call(func, [self.atom(a) for a in node.args], keywords)
        if isinstance(node, ast.BinOp):
            return ast.BinOp(self.atom(node.left), node.op, self.atom(node.right))
        if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            return ast.UnaryOp(node.op, self.atom(node.operand))
        if isinstance(node, ast.Compare):
            right = [self.atom(c) for c in node.comparators]
            return ast.Compare(self.atom(node.left), node.ops, right)
        if isinstance(node, ast.Subscript):
            return ast.Subscript(self.atom(node.value), self.atom(node.slice), ast.Load())
        return self.atom(node)


def normalized(text):
    """Returns a program with arguments and values renamed by their number, in a fixed format."""
    tree = ast.parse(text)
    for function in tree.body:
        numbers = {}
        for node in ast.walk(function):
            if isinstance(node, ast.arg):
                numbers.setdefault(node.arg, f"v{len(numbers)}")
                node.arg = numbers[node.arg]
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                numbers.setdefault(node.id, f"v{len(numbers)}")
        Renaming(numbers).visit(function)
    return ast.unparse(tree)


class Program:
    """arguments: names. outputs: the names that are returned. helpers: functions that edits use."""

    def __init__(self, source):
        function = ast.parse(source).body[0]
        self.arguments = [a.arg for a in function.args.args]
        self.result_type = ast.unparse(function.returns) if function.returns else "Tensor"
        self.helpers = ()
        flattening = Flattening(self.arguments)
        *lines, last = function.body
        if not isinstance(last, ast.Return):
            raise ValueError("the last statement is no return")
        for line in lines:
            flattening.add(line)
        self.is_tuple = isinstance(last.value, ast.Tuple)
        values = last.value.elts if self.is_tuple else [last.value]
        self.outputs = [ast.unparse(flattening.atom(v)) for v in values]
        self.statements = flattening.statements

    def copy(self):
        made = copy.copy(self)
        made.arguments, made.outputs = list(self.arguments), list(self.outputs)
        made.statements = list(self.statements)
        return made

    def text(self):
        arguments = ", ".join(f"{name}: Tensor" for name in self.arguments)
        lines = list(self.helpers)
        lines.append(f"def forward({arguments}) -> {self.result_type}:")
        for statement in self.statements:
            lines += ["    " + line for line in statement.text.splitlines()]
        outputs = ", ".join(self.outputs)
        return "\n".join(lines) + f"\n    return {outputs}\n"

    # Edits. Each returns a new program.

    def with_value(self, index, text):
        """Replaces the value of statement `index` by an expression."""
        made = self.copy()
        old = self.statements[index]
        value = ast.parse(text, mode="eval").body if isinstance(text, str) else text
        made.statements[index] = Statement(old.targets, value, old.line)
        return made

    def with_lines(self, index, lines):
        """Inserts statements in front of statement `index`."""
        made = self.copy()
        made.statements[index:index] = [Statement([], None, 0, line) for line in lines]
        return made

    def with_helpers(self, *helpers):
        made = self.copy()
        made.helpers = self.helpers + tuple(h for h in helpers if h not in self.helpers)
        return made

    def changing(self, name, lines):
        """Changes a value between its definition and its uses.

        In `lines`, GIVEN is the value as it is defined; they assign NAME, which its uses read.
        """
        given = f"{name}_given"
        lines = [re.sub(r"\bGIVEN\b", given, re.sub(r"\bNAME\b", name, line)) for line in lines]
        if name in self.arguments:
            made = self.copy()
            made.arguments[made.arguments.index(name)] = given
            return made.with_lines(0, lines)
        index = self.definition(name)
        made = self.copy()
        old = self.statements[index]
        targets = [given if t == name else t for t in old.targets]
        made.statements[index] = Statement(targets, old.value, old.line)
        return made.with_lines(index + 1, lines)

    def changing_output(self, number, lines):
        """Changes an output behind all its other uses. lines: as in changing()."""
        made = self.copy()
        name, given = f"output_{number}", self.outputs[number]
        lines = [re.sub(r"\bGIVEN\b", given, re.sub(r"\bNAME\b", name, line)) for line in lines]
        made.outputs[number] = name
        return made.with_lines(len(made.statements), lines)

    def definition(self, name):
        """Returns the index of the statement that defines a value."""
        return next(i for i, s in enumerate(self.statements) if name in s.targets)


class Layout:
    """The shape and dtype of a tensor in one case."""

    def __init__(self, tensor):
        self.shape, self.dtype = tuple(tensor.shape), tensor.dtype

    def __eq__(self, other):
        return (self.shape, self.dtype) == (other.shape, other.dtype)


def empty_arguments(task, sizes):
    return [torch.empty(t.shape_in(sizes), dtype=t.dtype, device="meta") for t in task.tensors]


def layouts_of(program, task, cases):
    """Returns the layouts of all values: a list with one for each case, by name.

    The program runs on tensors without contents. Values that are no tensor in a case are left out.
    """
    layouts = {}
    with torch.inference_mode():
        for sizes in cases:
            known = names_of(Aten("meta"))
            for name, tensor in zip(program.arguments, empty_arguments(task, sizes)):
                known[name] = tensor
                layouts.setdefault(name, []).append(Layout(tensor))
            for statement in program.statements:
                exec(compile(statement.text, "statement", "exec"), known)
                for name in statement.targets:
                    if isinstance(known[name], torch.Tensor):
                        layouts.setdefault(name, []).append(Layout(known[name]))
    return {name: found for name, found in layouts.items() if len(found) == len(cases)}


def output_layouts(forward, task, sizes):
    """Returns the layouts of the outputs of a function that runs on tensors without contents."""
    with torch.inference_mode():
        return [Layout(t) for t in outputs_of(forward(*empty_arguments(task, sizes)))]
