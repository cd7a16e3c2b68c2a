"""Numbers the values of programs so that values which are surely equal have one number.

Value numbering with a few algebraic rules: neutral operands, operators that change nothing after
another one, and the order of the operands of commutative operators. Unused values do not count.
"""

import ast

from program import Program
from subject import Operation, number_of

COMMUTATIVE = {"add", "mul", "maximum", "minimum", "eq", "ne", "bitwise_and", "bitwise_or"}
NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "div": 1}  # as the second operand
COPIES = {"contiguous", "detach", "clone", "alias"}
# Results that are never negative, whatever the operands are, and if the first operand is not.
NEVER_NEGATIVE = {"exp", "exp2", "abs", "square", "relu", "sigmoid", "softmax", "relu6"}
KEEPS_SIGN = {
    "sum", "mean", "amax", "amin", "sqrt", "contiguous", "reshape", "view", "transpose", "squeeze",
    "unsqueeze", "permute", "expand", "expand_as", "t", "max_pool1d", "max_pool2d", "max_pool3d",
}  # fmt: skip
USELESS_ON_NONNEGATIVE = {"relu", "abs"}


class Unreadable(Exception):
    """A program has statements whose effects this module does not follow."""


class Numbering:
    """Numbers of values, shared by all programs that are compared."""

    def __init__(self):
        self._numbers = {}
        self._nonnegative = set()

    def _number(self, key):
        return self._numbers.setdefault(key, len(self._numbers))

    def outputs(self, text):
        """Returns the numbers of a program's outputs. Raises Unreadable."""
        functions = ast.parse(text).body
        program = Program(ast.unparse(functions[-1]))
        helpers = {f.name: ast.unparse(f) for f in functions[:-1]}
        known = {name: self._number(("argument", i)) for i, name in enumerate(program.arguments)}
        for statement in program.statements:
            if statement.value is None:
                raise Unreadable(statement.text)
            number = self._value(statement.value, known, helpers)
            for place, target in enumerate(statement.targets):
                several = len(statement.targets) > 1
                known[target] = self._number(("part", number, place)) if several else number
        return [known.get(name, name) for name in program.outputs]

    def _value(self, node, known, helpers):
        if isinstance(node, ast.Name):
            return known.get(node.id, self._number(("name", node.id)))
        operation = Operation(node)
        if not operation.name:
            return self._opaque(node, known, helpers)
        if operation.name.endswith("_"):
            raise Unreadable(ast.unparse(node))
        operands = [self._operand(o, known, helpers) for o in operation.operands]
        keywords = tuple(
            (k, self._operand(v, known, helpers)) for k, v in sorted(operation.keywords.items())
        )
        simpler = self._simpler(operation, operands)
        if simpler is not None:
            return simpler
        if operation.name in COMMUTATIVE:
            operands.sort(key=str)
        number = self._number((operation.name, tuple(operands), keywords))
        if self._is_nonnegative(operation.name, operands):
            self._nonnegative.add(number)
        return number

    def _operand(self, node, known, helpers):
        """Returns a value's number, or the text of a constant."""
        constant = number_of(node)
        if constant is not None:
            return f"constant {float(constant)}"
        return self._value(node, known, helpers)

    def _opaque(self, node, known, helpers):
        """Numbers an expression by its text, with the numbers of the values in it."""
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        values = tuple(sorted((n, known[n]) for n in names if n in known))
        called = tuple(helpers[n] for n in sorted(names) if n in helpers)
        renamed = ast.unparse(node)
        return self._number(("expression", renamed, values, called))

    def _simpler(self, operation, operands):
        """Returns the number of an operand that the result is equal to, or None."""
        first = operands[0] if operands else None
        if operation.name in COPIES:
            return first
        if len(operands) == 2 and operation.name in NEUTRAL:
            neutral = f"constant {float(NEUTRAL[operation.name])}"
            if operands[1] == neutral and isinstance(first, int):
                return first
            if first == neutral and operation.name in COMMUTATIVE and isinstance(operands[1], int):
                return operands[1]
        if operation.name in USELESS_ON_NONNEGATIVE and first in self._nonnegative:
            return first
        return None

    def _is_nonnegative(self, name, operands):
        if name in NEVER_NEGATIVE or (name == "mul" and operands[0] == operands[-1]):
            return True
        both = all(o in self._nonnegative for o in operands if isinstance(o, int))
        return (name in KEEPS_SIGN and operands[0] in self._nonnegative) or (
            name in {"add", "mul", "maximum"} and both and all(isinstance(o, int) for o in operands)
        )


def are_equal(reference, text):
    """Returns whether two programs surely return equal values."""
    numbering = Numbering()
    try:
        return numbering.outputs(reference) == numbering.outputs(text)
    except (Unreadable, SyntaxError, ValueError, IndexError):
        return False
