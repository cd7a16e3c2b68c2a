"""Rules for what modules of networks consist of: layers, norms and losses as PyTorch names them,
products of two inputs, and operators with a number.
"""

from expressions import filled
from program import reduced, scaled

SCALARS = (0.1, 0.5, 1.5, 2.0, 3.0, 10.0)
ARITHMETIC = {
    "sum with a number": "x + {}",
    "difference to a number": "x - {}",
    "number minus the value": "{} - x",
    "product with a number": "x * {}",
    "quotient by a number": "x / {}",
}
# Activations that modules write out. `x` is the value.
WRITTEN_OUT = {
    "swish": "torch.sigmoid(x) * x",
    "swish from the right": "x * torch.sigmoid(x)",
    "mish": "x * torch.tanh(torch.softplus(x))",
    "hard swish": "x * torch.hardtanh(x + 3.0, 0.0, 6.0) / 6.0",
    "square": "x ** 2",
    "gelu by its hyperbolic tangent": "0.5 * x * (torch.tanh((x + 0.044715 * x ** 3.0) * 0.7979)"
    " + 1.0)",
    "lower bound": "torch.clamp(x, -1.0)",
    "bounds": "torch.clamp(x, -0.5, 0.5)",
    "bounds by a hard tanh": "torch.hardtanh(x, -2.0, 2.0)",
    "leaky relu": "torch.leaky_relu(x, 0.2)",
    "softsign": "x / (torch.abs(x) + 1.0)",
    "dropout that is off": "torch.dropout(x, 0.1, False)",
}
# Of rows along `D`. `x` is the value.
NORMS = {
    "rows whose absolute values have sum one": "x / torch.sum(torch.abs(x), dim=[D], keepdim=True)",
    "rows of length one": "x / torch.linalg_vector_norm(x, 2, [D], True)",
    "RMS norm": "x / torch.sqrt(torch.mean(x ** 2, dim=[D], keepdim=True) + 1e-05)",
}
JOINS = {"sum": "+", "product": "*", "difference": "-"}
# Numbers for two tensors `x` and `y` of one shape.
WHOLE_LOSSES = {
    "mean squared error": "torch.mean((x - y) ** 2)",
    "mean absolute error": "torch.mean(torch.abs(x - y))",
    "sum of products": "torch.sum(x * y)",
    "smooth L1 loss": "torch.smooth_l1_loss(x, y)",
    "hinge loss": "torch.mean(torch.clamp(1 - x * y, 0))",
    "divergence": "torch.kl_div(torch.log_softmax(x, dim=1), torch.softmax(y, dim=1), 2)",
    "logistic loss": "torch.mean(torch.softplus(-x * y))",
    "cosine loss": "torch.mean(1 - torch.cosine_similarity(x, y))",
}


def arithmetic(p, v):
    """Joins the value with a number."""
    words = p.random.choice(list(ARITHMETIC))
    return p.let(
        filled(ARITHMETIC[words].format(p.random.choice(SCALARS)), x=v.name), v.shape, words
    )


def written_out(p, v):
    words = p.random.choice(list(WRITTEN_OUT))
    return p.let(filled(WRITTEN_OUT[words], x=v.name), v.shape, words)


def scalar_parameter(p, v):
    """Joins the value with a parameter of one number, or of one for all of its channels."""
    shape = p.random.choice(((), (1,)))
    sign, words = p.random.choice((("+", "bias"), ("*", "factor"), ("-", "offset")))
    number = p.parameter(shape, "c")
    return p.let(f"{v.name} {sign} {number.name}", v.shape, f"{words} that is a parameter")


def linear_layer(p, v, out, has_bias):
    """Returns the value after a linear layer with this many columns."""
    wide = v.shape[-1]
    weight = p.parameter((out, wide), "w", scaled(wide))
    bias = f", {p.parameter((out,), 'b').name}" if has_bias else ""
    text = f"torch.linear({v.name}, {weight.name}{bias})"
    return p.let(text, (*v.shape[:-1], out), f"linear layer with {out} columns")


def layer(p, v):
    """A linear layer on features, with or without a bias."""
    if v.rank not in (2, 3) or not isinstance(v.shape[-1], int) or v.shape[-1] < 8:
        return None
    out = p.random.choice((16, 64, 128, 256, 512, 1024))
    return linear_layer(p, v, out, p.random.random() < 0.85)


def layer_norm(p, v):
    """Layer norm over the last dimension, if its size is fixed."""
    if v.rank < 2 or not isinstance(v.shape[-1], int) or v.shape[-1] < 8:
        return None
    weight, bias = p.parameter(v.shape[-1:], "g"), p.parameter(v.shape[-1:], "b")
    text = f"torch.layer_norm({v.name}, [{v.shape[-1]}], {weight.name}, {bias.name})"
    return p.let(text, v.shape, "layer norm")


def norm(p, v):
    """Divides rows along a dimension by their length."""
    if v.rank < 2:
        return None
    words, d = p.random.choice(list(NORMS)), p.random.randrange(1, v.rank)
    return p.let(filled(NORMS[words], x=v.name, D=str(d)), v.shape, words)


def along(p, v):
    """A softmax, or a running sum or product, along a dimension."""
    if v.rank < 2:
        return None
    name = p.random.choice(("softmax", "softmax", "log_softmax", "cumsum", "cumprod"))
    d = p.random.randrange(1, v.rank)
    operand = f"torch.tanh({v.name})" if name == "cumprod" else v.name
    return p.let(f"torch.{name}({operand}, dim={d})", v.shape, name.replace("_", " "))


def extreme(p, v):
    """The largest or smallest number along a dimension, as the pair of values and places."""
    if v.rank < 2:
        return None
    name, d, keeps = (
        p.random.choice(("max", "min")),
        p.random.randrange(1, v.rank),
        p.random.random() < 0.5,
    )
    shape = reduced(v.shape, [d], keeps)
    text = f"torch.{name}({v.name}, {d}{', True' if keeps else ''})[0]"
    return p.let(text, shape, f"{name} along {d}")


def kept_reduction(p, v):
    """A reduction along the channels or along all later dimensions, which usually stay as ones."""
    if v.rank < 2:
        return None
    name = p.random.choice(("sum", "mean", "logsumexp", "amax", "prod"))
    dims = [1] if v.rank == 2 or p.random.random() < 0.5 else list(range(2, v.rank))
    if name == "prod":
        dims, keeps = [1], p.random.random() < 0.5
        text = f"torch.prod(torch.sigmoid({v.name}) + 0.5, 1{', True' if keeps else ''})"
    else:
        keeps = p.random.random() < 0.7
        text = f"torch.{name}({v.name}, dim={dims}, keepdim={keeps})"
    shape = reduced(v.shape, dims, keeps)
    return p.let(text, shape, f"{name} along {dims}")


def residual(p, v):
    """Joins the value with an earlier one of its shape."""
    others = p.others_like(v)
    words = p.random.choice(list(JOINS))
    if not others:
        return None
    return p.let(
        f"{v.name} {JOINS[words]} {p.random.choice(others).name}",
        v.shape,
        f"{words} with a result",
    )


def with_input(p, v):
    """Joins the value with another input of its shape, if the sizes are those of arguments."""
    given = {d for t in p.inputs + p.parameters for d in t["shape"]}
    if len(p.inputs) > 2 or not all(isinstance(d, int) or d in given for d in v.shape):
        return None
    words = p.random.choice(list(JOINS))
    other = p.input(v.shape, "y")
    return p.let(f"{v.name} {JOINS[words]} {other.name}", v.shape, f"{words} with an input")


def whole_loss(p, v):
    """One number for the value and a target."""
    if v.rank != 2 or v.kind != "float" or v.is_made:
        return None
    words = p.random.choice(list(WHOLE_LOSSES))
    target = p.input(v.shape, "y")
    return p.let(filled(WHOLE_LOSSES[words], x=v.name, y=target.name), (), words)


def cross_entropy(p, v):
    """The cross entropy of rows with the numbers of their classes, which are an input."""
    if v.rank != 2 or not isinstance(v.shape[0], str):
        return None
    index = p.input(v.shape[:1], "i", ("integers", 0, v.shape[1]), "index")
    return p.let(f"torch.cross_entropy_loss({v.name}, {index.name})", (), "cross entropy")


def product(p, v):
    """The product of the first input with another, each of them as it is or transposed."""
    if v.is_made or v.rank not in (2, 3) or len(p.inputs) > 1:
        return None
    inner = v.shape[-1]
    columns = p.size("K", p.random.choice((64, 128, 256, 512, 1024)))
    if v.rank == 3:
        batch = [v.shape[0]] if p.random.random() < 0.6 else []
        other = p.input((*batch, inner, columns), "y", scaled(p.timed_size(inner)))
        name = "bmm" if batch else "matmul"
        return p.let(f"torch.{name}({v.name}, {other.name})", (*v.shape[:2], columns), "product")
    left, rows, shape = v.name, v.shape[0], (inner, columns)
    if p.random.random() < 0.3:
        left, rows, shape = f"torch.numpy_T({v.name})", inner, (v.shape[0], columns)
    is_turned = p.random.random() < 0.3
    inner = shape[0]
    deviation = scaled(p.timed_size(inner))
    other = p.input(shape[::-1] if is_turned else shape, "y", deviation)
    right = f"torch.numpy_T({other.name})" if is_turned else other.name
    return p.let(f"torch.matmul({left}, {right})", (rows, columns), "product of two inputs")
