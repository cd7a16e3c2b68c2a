"""Tables of the expressions that rules choose from: what each does in words, and its TorchScript.

In an expression `x` and `y` stand for values, `D` for a dimension and `K` for whether it is kept.
All are continuous: where a value jumps, rounding decides on which side a right program lands.
"""

# Functions of one value that are defined for every number. `x` is the value.
UNARY = {
    "relu": "torch.relu(x)",
    "sigmoid": "torch.sigmoid(x)",
    "tanh": "torch.tanh(x)",
    "gelu": "torch.gelu(x)",
    "silu": "torch.silu(x)",
    "softplus": "torch.softplus(x)",
    "leaky relu": "torch.leaky_relu(x, 0.1)",
    "elu": "torch.elu(x)",
    "selu": "torch.selu(x)",
    "hard swish": "torch.hardswish(x)",
    "hard sigmoid": "torch.hardsigmoid(x)",
    "mish": "torch.mish(x)",
    "absolute value": "torch.abs(x)",
    "square": "x * x",
    "negation": "-x",
    "clamp": "torch.clamp(x, -2.0, 2.0)",
    "clamp to one": "torch.clamp(x, 0.0, 1.0)",
    "hard tanh": "torch.hardtanh(x)",
    "leaky relu of a hundredth": "torch.leaky_relu(x)",
    "root of the absolute value": "torch.sqrt(torch.abs(x) + 1.0)",
    "exponential of minus the absolute value": "torch.exp(-torch.abs(x))",
    "logarithm of one plus the absolute value": "torch.log1p(torch.abs(x))",
    "sine": "torch.sin(x)",
    "arc tangent": "torch.atan(x)",
    "error function": "torch.erf(x)",
    "soft sign": "x / (1.0 + torch.abs(x))",
    "reciprocal of one plus the square": "1.0 / (1.0 + x * x)",
}
BINARY = {
    "sum": "x + y",
    "difference": "x - y",
    "product": "x * y",
    "larger of both": "torch.maximum(x, y)",
    "smaller of both": "torch.minimum(x, y)",
    "quotient": "x / (1.0 + torch.abs(y))",
    "gate": "x * torch.sigmoid(y)",
    "choice": "torch.where(y > 0, x + y, x - 0.5 * y)",
    "length of both": "torch.sqrt(x * x + y * y + 1.0)",
}
REDUCTIONS = {
    "sum": "torch.sum(x, dim=[D], keepdim=K)",
    "mean": "torch.mean(x, dim=[D], keepdim=K)",
    "maximum": "torch.amax(x, dim=[D], keepdim=K)",
    "minimum": "torch.amin(x, dim=[D], keepdim=K)",
    "log of the summed exponentials": "torch.logsumexp(x, dim=[D], keepdim=K)",
    "norm": "torch.sqrt(torch.sum(x * x, dim=[D], keepdim=K) + 1e-6)",
    "variance": "torch.var(x, dim=[D], unbiased=False, keepdim=K)",
}
LOSSES = {
    "squared error": "torch.mean((x - y) * (x - y), dim=[D])",
    "absolute error": "torch.mean(torch.abs(x - y), dim=[D])",
    "Huber loss": "torch.mean(torch.huber_loss(x, y, reduction=0), dim=[D])",
    "hinge loss": "torch.mean(torch.clamp(1.0 - x * y, min=0.0), dim=[D])",
    "cross entropy with a softmax": "-torch.sum(torch.softmax(y, dim=D) * "
    "torch.log_softmax(x, dim=D), dim=[D])",
    "divergence of two softmaxes": "torch.sum(torch.softmax(y, dim=D) * "
    "(torch.log_softmax(y, dim=D) - torch.log_softmax(x, dim=D)), dim=[D])",
    "logistic loss": "torch.mean(torch.softplus(-x * torch.tanh(y)), dim=[D])",
    "one minus the cosine": "1.0 - torch.sum(x * y, dim=[D]) / "
    "torch.sqrt((torch.sum(x * x, dim=[D]) + 1e-3) * (torch.sum(y * y, dim=[D]) + 1e-3))",
}


def filled(text, **names):
    """Replaces the letters of a table's expression that stand alone."""
    out, word = [], ""
    for c in text + " ":
        if c.isalnum() or c in "._":
            word += c
            continue
        out.append(names.get(word, word))
        word = ""
        out.append(c)
    return "".join(out)[:-1]
