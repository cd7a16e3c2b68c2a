"""What mutations are made of: a task's reference with the layouts of its values."""

import ast
import dataclasses
import time
from collections.abc import Callable

from operators import PROGRAM_ERRORS, forward_of
from program import Program, layouts_of, output_layouts

SECONDS_OF_A_CASE = 0.5  # cases that take longer without contents are not checked


@dataclasses.dataclass
class Mutation:
    """A way to make a wrong program.

    operator: distinguishes mutations of one kind, of which a set should have many different ones.
    line: of the reference or of the kernel, 0 for the whole. make: returns a Program, or the text
    of a document.
    """

    kind: str
    operator: str
    line: int
    description: str
    make: Callable


class Operation:
    """An expression of a statement: the operator's name, its operands and its keywords."""

    BINARY = {
        ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow",
        ast.MatMult: "matmul", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
        ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    }  # fmt: skip
    COMPARISONS = {
        ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne",
    }  # fmt: skip

    def __init__(self, node):
        self.node, self.name, self.operands, self.keywords = node, "", [], {}
        if isinstance(node, ast.BinOp):
            self.name = self.BINARY.get(type(node.op), "")
            self.operands = [node.left, node.right]
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            self.name = self.COMPARISONS.get(type(node.ops[0]), "")
            self.operands = [node.left, *node.comparators]
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            self.name, self.operands = "neg", [node.operand]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self.keywords = {k.arg: k.value for k in node.keywords}
            self.name = node.func.attr
            is_function = isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"
            self.operands = ([] if is_function else [node.func.value]) + list(node.args)

    @property
    def base(self):
        """The name without the underscore of an operator that works in place."""
        return self.name.rstrip("_")

    def operand(self, number, keyword):
        """Returns an operand that may be passed by position or by keyword, or None."""
        if number < len(self.operands):
            return self.operands[number]
        return self.keywords.get(keyword)


def number_of(node):
    """Returns the number that a node represents, or None."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node, sign = node.operand, -1
    is_number = isinstance(node, ast.Constant) and isinstance(node.value, (int, float))
    return sign * node.value if is_number and not isinstance(node.value, bool) else None


class Subject:
    """A task's reference. cases: the sizes in which mutants are checked."""

    def __init__(self, task):
        self.task = task
        self.program = Program(task.reference)
        self.cases = self._quick_cases()
        self.layouts = layouts_of(self.program, task, self.cases)
        self.parameters = {
            name for name, t in zip(self.program.arguments, task.tensors) if t.is_parameter
        }
        forward = forward_of(task.reference, "meta")
        self.expected = [output_layouts(forward, task, sizes) for sizes in self.cases]
        self.wrong_forms = None  # what branch_mutations has made of the outputs
        self.operations = [
            Operation(s.value) if s.value is not None else Operation(None)
            for s in self.program.statements
        ]

    def _quick_cases(self):
        """Returns the cases that are quick without contents, or the quickest."""
        forward = forward_of(self.task.reference, "meta")
        seconds = []
        for sizes in sorted(self.task.cases, key=self.task.elements):
            begin = time.perf_counter()
            output_layouts(forward, self.task, sizes)
            seconds.append((time.perf_counter() - begin, sizes))
            if seconds[-1][0] > SECONDS_OF_A_CASE and len(seconds) > 1:
                break
        return [sizes for k, (s, sizes) in enumerate(seconds) if s <= SECONDS_OF_A_CASE or k == 0]

    def is_tensor(self, node):
        return isinstance(node, ast.Name) and node.id in self.layouts

    def is_float(self, name):
        return all(layout.dtype.is_floating_point for layout in self.layouts[name])

    def are_alike(self, a, b):
        """Returns whether two values have the same layout in every case."""
        return self.layouts[a] == self.layouts[b]

    def rank(self, name):
        ranks = {len(layout.shape) for layout in self.layouts[name]}
        return ranks.pop() if len(ranks) == 1 else 0

    def dims(self, name, least=2):
        """Returns the dimensions that have at least `least` slices in every case."""
        sizes = zip(*(layout.shape for layout in self.layouts[name])) if self.rank(name) else []
        return [d for d, slices in enumerate(sizes) if min(slices) >= least]

    def values(self):
        """Returns the names of the tensors that statements define, apart from the outputs."""
        return [
            name
            for s in self.program.statements
            for name in s.targets
            if name in self.layouts and name not in self.program.outputs
        ]

    def line_of(self, name):
        if name in self.program.arguments:
            return 1
        return self.program.statements[self.program.definition(name)].line

    def role(self, name):
        """Returns how descriptions call a value."""
        if name in self.parameters:
            return f"the parameter {name}"
        kind = "the input" if name in self.program.arguments else "the value"
        return f"{kind} {name}"

    def problem_of(self, text):
        """Returns why a program is no mutant, or None: it must run and have the right layouts."""
        try:
            forward = forward_of(text, "meta")
            for sizes, expected in zip(self.cases, self.expected):
                if output_layouts(forward, self.task, sizes) != expected:
                    return "another layout"
        except PROGRAM_ERRORS as e:
            return f"{type(e).__name__}: {e}"
        return None
