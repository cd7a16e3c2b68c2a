"""Says in words why a module cannot be traced."""

import re

from source_file import Failure, reason

DIFFERENTIATES = re.compile(
    r"autograd\.grad|func\.(grad|jacrev|jacfwd|hessian|vjp|jvp)|\.backward\("
)
# Signs in an exception's text, and what they mean.
MEANINGS = (
    (
        "fake tensor in the exported program constant",
        "it holds a tensor that tracing cannot follow: forward() writes a parameter in place, as "
        "an embedding with max_norm does, or makes a tensor in a way that is hidden from PyTorch's "
        "operators",
    ),
    (
        r"\.numpy\(\) is not supported for tensor subclasses",
        "forward() gives a tensor to NumPy, whose functions tracing cannot follow; use PyTorch's "
        "functions instead",
    ),
    (
        "_nested_tensor|NestedTensor",
        "it makes a nested tensor, which tasks do not support; pad the rows to one length and give "
        "a mask",
    ),
    (
        "in output, which is not a known type",
        "forward() returns an object that is neither a tensor nor a list, tuple or dict of tensors",
    ),
    (
        r"torch\.classes\.quantized|quantized nyi|quantize_per_(tensor|channel)",
        "it uses quantized tensors or layers, which tasks do not support; compute with whole "
        "numbers and scales in tensors of other types",
    ),
)


def failure_of(error, source):
    """Returns a Failure for an exception of torch.export, or None if the text says enough.

    source: the SourceFile of the module.
    """
    kind = type(error).__name__
    line = re.match(r"line \d+", reason(error, source.path))
    where = f" ({line[0]})" if line else ""
    if DIFFERENTIATES.search(source.text):
        return Failure("its forward() differentiates, for which a graph has no operators")
    if kind == "DynamicOutputShapeException":
        return Failure(
            f"it calls {error}{where}, whose result has a shape that depends on values; tasks do "
            "not support such operators"
        )
    for sign, meaning in MEANINGS:
        if re.search(sign, str(error)):
            return Failure(f"{meaning}{where}")
    if "DataDependent" in kind or any(
        sign in str(error) for sign in ("data-dependent", "Could not guard", "FakeTensor")
    ):
        return Failure(
            "its control flow or shapes depend on the values of a tensor, which a graph cannot "
            f"express{where}"
        )
    return None
