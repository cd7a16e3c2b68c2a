"""Compiles and calls the reference of an import."""

import re

import torch
from source_file import Failure
from torchscript_text import compile_source


class CompiledReference:
    """The compiled reference of an `Importer`.

    text: its source.
    operators: the kinds of operators that it calls, such as "aten::relu".
    writes: True if it calls an in-place operator.
    cloned: the names of the arguments that it copies before it writes into them.

    The constructor and `call` raise Failure if the reference does not compile.
    """

    def __init__(self, importer, cloned=()):
        self.importer, self.cloned = importer, list(cloned)
        self.compile()

    def compile(self):
        """Prints and compiles the reference, and sets `text`, `operators`, `unit` and `writes`."""
        self.text = self.importer.reference.text(self.cloned)
        try:
            self.unit, self.operators = compile_source(self.text)
        except Exception as error:
            message = re.sub(r"\s+", " ", str(error)).strip()
            raise Failure(f"its graph does not compile as TorchScript: {message[:300]}") from None
        self.writes = any(
            k.startswith("aten::") and k.endswith("_") and not k.endswith("__")
            for k in self.operators
        )

    def call(self, inputs, is_wide=False, drawn=None):
        """Returns the reference's outputs for copies of the given inputs, as a list of tensors.

        is_wide: if True, floating-point inputs and parameters are cast to float64.
        drawn: values of parameters, by placeholder, that replace those of the module.

        If the graph writes into arguments, the reference is compiled again with copies of them and
        called again.
        """
        im = self.importer
        values = im.constants | (drawn or {})
        parameters = [values[node].detach() for node in im.reference.parameters]
        if self.writes:
            parameters = [p.clone() for p in parameters]
        tensors = [im.as_checked(t).clone() for t in inputs]
        if is_wide:
            tensors, parameters = (
                [t.double() if t.is_floating_point() else t for t in some]
                for some in (tensors, parameters)
            )
        before = [t._version for t in tensors + parameters]
        with torch.no_grad():
            outputs = self.unit.forward(*tensors, *parameters)
        names = list(im.reference.inputs.values()) + list(im.reference.parameters.values())
        written = [n for n, t, v in zip(names, tensors + parameters, before) if t._version != v]
        if written:  # a task's reference must not change its arguments
            self.cloned += written
            self.compile()
            return self.call(inputs, is_wide, drawn)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]
