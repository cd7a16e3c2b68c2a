"""Tables of replacements for operators. In an expression `x` and `y` stand for the operands."""

# Replacements of functions of one value, by operator.
UNARY = {
    "relu": ["torch.gelu(x)", "torch.leaky_relu(x, 0.01)", "torch.abs(x)", "torch.relu6(x)"],
    "gelu": ["torch.relu(x)", "torch.silu(x)", 'torch.gelu(x, approximate="tanh")'],
    "silu": ["torch.gelu(x)", "torch.hardswish(x)", "torch.relu(x)"],
    "sigmoid": ["torch.hardsigmoid(x)", "torch.clamp(x * 0.25 + 0.5, 0.0, 1.0)"],
    "tanh": ["torch.hardtanh(x)", "x / (1.0 + torch.abs(x))", "x - x * x * x / 3.0"],
    "exp": ["1.0 + x", "1.0 + x + x * x * 0.5", "torch.exp2(x)", "torch.expm1(x)"],
    "expm1": ["torch.exp(x)", "x"],
    "log": ["torch.log1p(x)", "torch.log2(x)", "x - 1.0"],
    "log1p": ["torch.log(x)", "x"],
    "sqrt": ["x", "torch.sqrt(x + 1e-3)", "torch.rsqrt(x)"],
    "rsqrt": ["torch.rsqrt(x + 1e-3)", "torch.sqrt(x)"],
    "erf": ["torch.tanh(x)", "torch.tanh(1.1283791671 * x)"],
    "abs": ["x * x", "torch.relu(x)", "x"],
    "neg": ["x"],
    "square": ["torch.abs(x)", "x"],
    "sin": ["x", "x - x * x * x / 6.0"],
    "cos": ["1.0 - 0.5 * x * x"],
    "atan": ["torch.tanh(x)", "x"],
    "floor": ["torch.round(x)", "torch.trunc(x)"],
    "round": ["torch.floor(x)", "torch.floor(x + 0.5)"],
    "ceil": ["torch.floor(x) + 1.0", "torch.round(x)"],
    "trunc": ["torch.floor(x)"],
    "sign": ["torch.tanh(x)"],
    "reciprocal": ["2.0 - x"],
    "softplus": ["torch.relu(x)", "torch.log(1.0 + torch.exp(x))"],
    "mish": ["torch.silu(x)"],
    "elu": ["torch.leaky_relu(x, 0.1)", "torch.selu(x)"],
    "selu": ["torch.elu(x)"],
    "leaky_relu": ["torch.relu(x)", "torch.leaky_relu(x, 0.011)"],
    "hardswish": ["torch.silu(x)", "torch.relu(x)"],
    "hardsigmoid": ["torch.sigmoid(x)"],
    "hardtanh": ["torch.tanh(x)", "torch.relu(x)"],
    "log_sigmoid": ["torch.log(torch.sigmoid(x))", "-torch.relu(-x)"],
}
# Replacements of functions of two values.
BINARY = {
    "add": ["x - y", "torch.maximum(x, y)", "torch.hypot(x, y)"],
    "sub": ["x + y", "torch.abs(x - y)"],
    "mul": ["x + y", "x", "x * torch.abs(y)"],
    "div": ["x * y", "x", "x / (y + 1e-3)"],
    "maximum": ["torch.minimum(x, y)", "x"],
    "minimum": ["torch.maximum(x, y)", "x"],
    "lt": ["x <= y", "x > y"],
    "le": ["x < y"],
    "gt": ["x >= y", "x < y"],
    "ge": ["x > y"],
    "eq": ["x >= y", "x != y"],
    "ne": ["x == y"],
    "bitwise_and": ["x | y"],
    "bitwise_or": ["x & y"],
}
# Other names under which an operator takes the same operands.
NAMES = {
    "sum": ["mean", "amax"],
    "mean": ["sum", "amax"],
    "amax": ["amin", "mean", "logsumexp"],
    "amin": ["amax", "mean"],
    "max": ["min"],
    "min": ["max"],
    "logsumexp": ["amax"],
    "var": ["std"],
    "std": ["var"],
    "argmax": ["argmin"],
    "argmin": ["argmax"],
    "cumsum": ["cumprod", "logcumsumexp"],
    "cumprod": ["cumsum"],
    "softmax": ["log_softmax"],
    "log_softmax": ["softmax"],
    "tril": ["triu"],
    "triu": ["tril"],
    "max_pool1d": ["avg_pool1d"],
    "avg_pool1d": ["max_pool1d"],
    "max_pool2d": ["avg_pool2d"],
    "avg_pool2d": ["max_pool2d"],
    "max_pool3d": ["avg_pool3d"],
    "avg_pool3d": ["max_pool3d"],
    "mse_loss": ["l1_loss", "huber_loss"],
    "smooth_l1_loss": ["mse_loss", "l1_loss"],
    "huber_loss": ["mse_loss", "l1_loss"],
}
# Forms that are equal in exact arithmetic and lose digits or overflow in float32. D: a dimension.
UNSTABLE = {
    "softmax": "torch.exp(x) / torch.sum(torch.exp(x), dim=[D], keepdim=True)",
    "log_softmax": "torch.log(torch.softmax(x, D))",
    "logsumexp": "torch.log(torch.sum(torch.exp(x), dim=[D], keepdim=K))",
    "var": "torch.mean(x * x, dim=[D], keepdim=K) - torch.mean(x, dim=[D], keepdim=K) ** 2",
    "softplus": "torch.log(1.0 + torch.exp(x))",
    "sigmoid": "torch.exp(x) / (1.0 + torch.exp(x))",
    "tanh": "(torch.exp(2.0 * x) - 1.0) / (torch.exp(2.0 * x) + 1.0)",
    "expm1": "torch.exp(x) - 1.0",
    "log1p": "torch.log(1.0 + x)",
}
# Operators that keep values within bounds, that blank values out, and that take a bias as an
# operand: its number and its keyword.
CLAMPS = {
    "relu", "relu6", "clamp", "clamp_min", "clamp_max", "clip", "hardtanh", "threshold",
    "leaky_relu", "maximum", "minimum",
}  # fmt: skip
MASKS = {"masked_fill", "where", "tril", "triu", "dropout"}
BIASED = {
    "linear": (2, "bias"), "conv1d": (2, "bias"), "conv2d": (2, "bias"), "conv3d": (2, "bias"),
    "conv_transpose1d": (2, "bias"), "conv_transpose2d": (2, "bias"),
    "conv_transpose3d": (2, "bias"), "layer_norm": (3, "bias"), "group_norm": (3, "bias"),
    "batch_norm": (2, "bias"), "instance_norm": (2, "bias"),
}  # fmt: skip
SCALED = {
    "layer_norm": (2, "weight"), "group_norm": (2, "weight"), "batch_norm": (1, "weight"),
    "instance_norm": (1, "weight"),
}  # fmt: skip
# The operand that is a dimension.
DIMENSIONS = {
    "softmax": 1, "log_softmax": 1, "cumsum": 1, "cumprod": 1, "sum": 1, "mean": 1, "amax": 1,
    "amin": 1, "max": 1, "min": 1, "argmax": 1, "argmin": 1, "logsumexp": 1, "flip": 1, "var": 1,
}  # fmt: skip
