"""Mutations of reductions: they read a sample of what they reduce, and rescale the result."""

import ast
import re

from operator_mutations import dimension_of, edit, filled
from program import substituted
from subject import number_of

# Returns a sample of the slices of dimension d.
SAMPLES = {
    "the first half": """\
def sample(x: Tensor, d: int) -> Tensor:
    return x.narrow(d, 0, (x.size(d) + 1) // 2)
""",
    "every second": """\
def sample(x: Tensor, d: int) -> Tensor:
    return torch.index_select(x, d, torch.arange(0, x.size(d), 2))
""",
    "every 16th": """\
def sample(x: Tensor, d: int) -> Tensor:
    return torch.index_select(x, d, torch.arange(0, x.size(d), 16))
""",
    "a scattered 16th": """\
def sample(x: Tensor, d: int) -> Tensor:
    n = x.size(d)
    return torch.index_select(x, d, torch.arange((n + 15) // 16) * 7919 % n)
""",
    "all but the last": """\
def sample(x: Tensor, d: int) -> Tensor:
    return x.narrow(d, 0, x.size(d) - 1)
""",
    "all but the last 64th": """\
def sample(x: Tensor, d: int) -> Tensor:
    return x.narrow(d, 0, x.size(d) - max(x.size(d) // 64, 1))
""",
}
# Compensates for the slices that were left out. y: the result, SHARE: all slices over those read.
RESCALED = {
    "sum": "y * SHARE",
    "prod": "torch.pow(y, SHARE)",
    "logsumexp": "y + math.log(SHARE)",
    "mean": "y", "amax": "y", "amin": "y", "max": "y", "min": "y", "var": "y", "std": "y",
    "matmul": "y * SHARE",
    "linear": "y * SHARE", "linalg_vector_norm": "y * SHARE ** 0.5", "conv1d": "y * SHARE",
    "conv2d": "y * SHARE", "conv3d": "y * SHARE",
}  # fmt: skip
# Forms in which normalizations read a sample. D: the dimension.
NORMALIZATIONS = {
    "softmax": "torch.exp(x - torch.amax(x, dim=[D], keepdim=True)) / (share_read * torch.sum("
    "torch.exp(sample(x, D) - torch.amax(x, dim=[D], keepdim=True)), dim=[D], keepdim=True))",
    "log_softmax": "x - math.log(share_read) - "
    "torch.logsumexp(sample(x, D), dim=[D], keepdim=True)",
    "layer_norm": "(x - torch.mean(sample(x, D), dim=[D], keepdim=True)) * torch.rsqrt(torch.var("
    "sample(x, D), dim=[D], unbiased=False, keepdim=True) + 1e-5)",
}
PRODUCTS = {"matmul", "bmm", "linear"}
CONVOLUTIONS = {"conv1d": 6, "conv2d": 6, "conv3d": 6}  # the operand that counts groups


def mutations(subject):
    for index, operation in enumerate(subject.operations):
        targets = subject.program.statements[index].targets
        if len(targets) != 1:
            continue
        if not operation.operands or not subject.is_tensor(operation.operands[0]):
            continue
        for dimension, parts in sampled_dimensions(subject, operation):
            for what, helper in SAMPLES.items():
                yield sampled(subject, index, operation, dimension, parts, what, helper)
        if operation.base in NORMALIZATIONS:
            for what, helper in SAMPLES.items():
                yield from sampled_normalization(subject, index, operation, what, helper)


def sampled_dimensions(subject, operation):
    """Yields each dimension that is reduced, and the operands that have it.

    The operands are a list of (operand, dimension).
    """
    base, operands = operation.base, operation.operands
    x = operands[0].id
    if base in PRODUCTS and len(operands) > 1 and subject.is_tensor(operands[1]):
        inner = -1 if base == "linear" or subject.rank(operands[1].id) == 1 else -2
        yield -1, [(x, -1), (operands[1].id, inner)]
    elif base in CONVOLUTIONS and subject.is_tensor(operands[1]):
        groups = operation.operand(CONVOLUTIONS[base], "groups")
        if groups is None or number_of(groups) == 1:
            yield 1, [(x, 1), (operands[1].id, 1)]
    elif base in RESCALED:
        known = dimension_of(operation)
        dims = operation.operand(1, "dim")
        if known is not None:
            yield int(known), [(x, int(known))]
        elif dims is None and len(operands) == 1:
            yield from ((d, [(x, d)]) for d in subject.dims(x))  # a reduction over all of them
        elif isinstance(dims, ast.List):
            numbers = [number_of(e) for e in dims.elts]
            yield from ((d, [(x, d)]) for d in numbers if d is not None)


def sampled(subject, index, operation, dimension, parts, what, helper):
    """Returns the mutation in which an operator reads a sample of its operands' slices."""
    text = substituted(operation.node, {name: f"sample({name}, {d})" for name, d in parts})
    base = {"bmm": "matmul"}.get(operation.base, operation.base)
    value = re.sub(r"\by\b", lambda _: text, RESCALED[base].replace("SHARE", "share_read"))
    return reading_a_sample(subject, index, operation, parts[0][0], dimension, value, what, helper)


def sampled_normalization(subject, index, operation, what, helper):
    """Yields the mutation in which a normalization takes its statistics from a sample."""
    x = operation.operands[0].id
    dimension = dimension_of(operation)
    value = NORMALIZATIONS[operation.base]
    if operation.base == "layer_norm":
        shape = operation.operand(1, "normalized_shape")
        dimension = "-1" if isinstance(shape, ast.List) and len(shape.elts) == 1 else None
        for number, keyword, symbol in ((2, "weight", "*"), (3, "bias", "+")):
            operand = operation.operand(number, keyword)
            if operand is not None and subject.is_tensor(operand):
                value += f" {symbol} {operand.id}"
    if dimension is not None:
        value = filled(value, x=x, D=dimension)
        yield reading_a_sample(subject, index, operation, x, dimension, value, what, helper)


def reading_a_sample(subject, index, operation, x, dimension, value, what, helper):
    mutation = edit(
        subject,
        "reduction_sampled",
        f"{operation.base} {what}",
        index,
        f"`{ast.unparse(operation.node)}` reads {what} of its slices along dimension {dimension}",
        value,
    )
    share = f"share_read = {x}.size({dimension}) / sample({x}, {dimension}).size({dimension})"

    def make():
        program = subject.program.with_value(index, value)
        return program.with_lines(index, [share]).with_helpers(helper)

    mutation.make = make
    return mutation
