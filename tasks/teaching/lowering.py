"""Turns a reference into values: rules where there are some, and calls of ATen elsewhere."""

from collections import Counter

import calls
import elementwise_rules
import reduction_rules
import torch
import window_rules
from calls import AtenCall, result_of
from dims import Dim
from reading import Name
from rules import RULES, Call
from values import Builder, Unsupported, Value

__all__ = ["Lowered", "calls", "elementwise_rules", "reduction_rules", "window_rules"]


class Lowered:
    """outputs: values. prepared: what `prepare` computes. arguments: buffers, in order."""

    def __init__(self, reference, device, parameters, folds=True, channels_last=False):
        self.reference = reference
        self.b = Builder(len(reference.cases))
        self.device = device
        self.folds = folds
        self.channels_last = channels_last
        self.prepared = {}
        self.known = {}
        self.derivations = {}  # lists of the derivations of sizes, by statement
        self.arguments = []
        self.readers = Counter(reference.outputs)
        for statement in reference.statements:
            self.readers.update(statement.names())
        self.symbols = self._symbols(parameters)
        for name, t in reference.tensors.items():
            shapes = [[case[s] if isinstance(s, str) else s for s in t["shape"]]
                      for case in reference.cases]  # fmt: skip
            dims = [Dim([s[k] for s in shapes],
                        symbol if symbol in self.symbols else f"{name}.size({k})")
                    for k, symbol in enumerate(t["shape"])]  # fmt: skip
            buffer = self.b.buffer(name, dims, getattr(torch, t["dtype"]), is_contiguous=True,
                                   is_parameter=name in parameters)  # fmt: skip
            self.known[name] = buffer
            self.arguments.append(buffer)
        for statement in reference.statements:
            self.known[statement.name] = self._lower(statement)
            self._name_values(statement.name)
        self.outputs = [self.known[o] for o in reference.outputs]
        self.is_tuple = reference.is_tuple
        if not all(isinstance(o, Value) for o in self.outputs):
            raise Unsupported("an output that is no tensor")

    def _symbols(self, parameters):
        """Returns the task's symbols for sizes of inputs that differ between cases, and how the
        host program gets them. A capital letter begins no name of a kernel's variable."""
        reference, symbols = self.reference, {}
        names = {*reference.tensors, *(s.name for s in reference.statements)}
        for name, t in reference.tensors.items():
            for k, symbol in enumerate(t["shape"]):
                is_name = isinstance(symbol, str) and symbol[0].isupper() and symbol not in names
                if is_name and name not in parameters:
                    if len({case[symbol] for case in reference.cases}) > 1:
                        symbols.setdefault(symbol, f"{name}.size({k})")
        return symbols

    def _name_values(self, statement):
        """Notes which value is the result of a statement, and which it reduces to get there."""
        result = self.known[statement]
        if not isinstance(result, Value):
            return
        result.facts.setdefault("statement", statement)
        waiting = [result]
        while waiting:
            v = waiting.pop()
            if v.kind != "buffer" and "owner" not in v.facts:
                v.facts["owner"] = statement
                waiting += v.operands

    def _lower(self, statement):
        operands = self._there(statement.operands)
        keywords = {k: self._there(v) for k, v in statement.keywords.items()}
        first = statement.results[0]
        if isinstance(first, (int, float)):
            return self._number(statement, operands)
        function = RULES.get(statement.operator)
        if function is not None:
            try:
                made = function(self._call(statement), *operands, **keywords)
                self._check(made, first, statement)
                return made
            except (Unsupported, TypeError, AttributeError, IndexError, ValueError):
                pass  # ATen computes it
        return self._aten(statement, operands, keywords)

    def _call(self, statement):
        first = statement.results[0]
        is_one = isinstance(first, torch.Tensor)
        shapes = [list(r.shape) for r in statement.results] if is_one else None
        facts = {"device": self.device, "prepared": self.prepared, "readers": self.readers,
                 "name": statement.name, "operator": statement.operator, "folds": self.folds,
                 "channels_last": self.channels_last,
                 "derivations": self.derivations.setdefault(statement.name, []),
                 "first": next(iter(statement.names()), None)}  # fmt: skip
        return Call(self.b, shapes, first.dtype if is_one else None, facts)

    def _there(self, operand):
        if isinstance(operand, Name):
            return self.known[operand]
        if isinstance(operand, list):
            return [self._there(o) for o in operand]
        if isinstance(operand, slice):
            return slice(*[self._there(o) for o in (operand.start, operand.stop, operand.step)])
        return operand

    def _number(self, statement, operands):
        values = statement.results
        if len(set(values)) == 1:
            return values[0]
        if statement.operator == "size":
            return operands[0].dims[operands[1]]
        sign = {"add": "+", "sub": "-", "mul": "*", "floor_divide": "//"}.get(statement.operator)
        if sign is None:
            raise Unsupported(f"sizes computed by {statement.operator}")
        texts = [o.text if isinstance(o, Dim) else str(o) for o in operands]
        return Dim(values, f"({texts[0]}) {sign} ({texts[1]})")

    def _check(self, made, first, statement):
        """A rule that makes another shape or type than ATen is not used."""
        if isinstance(first, torch.Tensor):
            if not isinstance(made, Value) or made.dtype != first.dtype:
                raise Unsupported("another type")
            shapes = [tuple(d.values[k] for d in made.dims) for k in range(self.b.cases)]
            if shapes != [tuple(r.shape) for r in statement.results]:
                raise Unsupported("another shape")
            return
        for k, part in enumerate(made):
            shapes = [tuple(d.values[n] for d in part.dims) for n in range(self.b.cases)]
            if part.dtype != first[k].dtype or shapes != [
                tuple(r[k].shape) for r in statement.results
            ]:
                raise Unsupported("another shape")

    def _aten(self, statement, operands, keywords):
        call = AtenCall(statement.name, statement.operator, operands, keywords, statement.is_method)
        first = statement.results[0]
        if isinstance(first, torch.Tensor):
            contiguous = all(r.is_contiguous() for r in statement.results)
            return result_of(call, [list(r.shape) for r in statement.results], first.dtype,
                             contiguous)  # fmt: skip
        if not isinstance(first, (tuple, list)):
            raise Unsupported("a result that is no tensor")
        return [result_of(call, [list(r[k].shape) for r in statement.results], first[k].dtype,
                          all(r[k].is_contiguous() for r in statement.results), k)
                for k in range(len(first))]  # fmt: skip
