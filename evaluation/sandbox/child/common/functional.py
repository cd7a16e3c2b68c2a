# TorchScript versions of the functions of torch.nn.functional whose signatures differ from those of
# the ATen operators of the same names. All other names are looked up as ATen operators.


def reduction_number(reduction: str) -> int:
    number = 1
    if reduction == "none":
        number = 0
    elif reduction == "sum":
        number = 2
    return number


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu_(input) if inplace else torch.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.relu6_(input) if inplace else torch.relu6(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    return (
        torch.leaky_relu_(input, negative_slope)
        if inplace
        else torch.leaky_relu(input, negative_slope)
    )


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.elu_(input, alpha) if inplace else torch.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.selu_(input) if inplace else torch.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    return torch.celu_(input, alpha) if inplace else torch.celu(input, alpha)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.silu_(input) if inplace else torch.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.mish_(input) if inplace else torch.mish(input)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    return (
        torch.hardtanh_(input, min_val, max_val)
        if inplace
        else torch.hardtanh(input, min_val, max_val)
    )


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardswish_(input) if inplace else torch.hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return torch.hardsigmoid_(input) if inplace else torch.hardsigmoid(input)


def softsign(input: Tensor) -> Tensor:
    return input / (torch.abs(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    return input - torch.tanh(input)


def logsigmoid(input: Tensor) -> Tensor:
    return torch.log_sigmoid(input)


def softmin(input: Tensor, dim: int) -> Tensor:
    return torch.softmax(-input, dim)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return torch.dropout(input, p, training)


def batch_norm(
    input: Tensor,
    running_mean: Optional[Tensor],
    running_var: Optional[Tensor],
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    return torch.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def instance_norm(
    input: Tensor,
    running_mean: Optional[Tensor] = None,
    running_var: Optional[Tensor] = None,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    return torch.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    return input / torch.norm(input, p, [dim], True).clamp_min(eps).expand_as(input)


def embedding(input: Tensor, weight: Tensor, padding_idx: Optional[int] = None) -> Tensor:
    return torch.embedding(weight, input)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, mode: str = "mean"
) -> Tensor:
    indices = input
    starts = offsets
    if input.dim() == 2:
        starts = torch.arange(0, input.numel(), input.size(1), device=input.device)
        indices = input.reshape(-1)
    assert starts is not None
    kind = 1
    if mode == "sum":
        kind = 0
    if mode == "max":
        kind = 2
    return torch.embedding_bag(weight, indices, starts, False, kind, False, None, False)[0]


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return torch.mse_loss(input, target, reduction_number(reduction))


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    return torch.l1_loss(input, target, reduction_number(reduction))


def smooth_l1_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    return torch.smooth_l1_loss(input, target, reduction_number(reduction), beta)


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0
) -> Tensor:
    return torch.huber_loss(input, target, reduction_number(reduction), delta)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    return torch.nll_loss(input, target, weight, reduction_number(reduction), ignore_index)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    return torch.cross_entropy_loss(
        input, target, weight, reduction_number(reduction), ignore_index, label_smoothing
    )


def kl_div(
    input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    if reduction == "batchmean":
        return torch.kl_div(input, target, 2, log_target=log_target) / input.size(0)
    return torch.kl_div(input, target, reduction_number(reduction), log_target=log_target)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Optional[Tensor] = None, reduction: str = "mean"
) -> Tensor:
    return torch.binary_cross_entropy(input, target, weight, reduction_number(reduction))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Optional[Tensor] = None,
    reduction: str = "mean",
    pos_weight: Optional[Tensor] = None,
) -> Tensor:
    return torch.binary_cross_entropy_with_logits(
        input, target, weight, pos_weight, reduction_number(reduction)
    )


def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean"
) -> Tensor:
    return torch.hinge_embedding_loss(input, target, margin, reduction_number(reduction))


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    return torch.cosine_embedding_loss(input1, input2, target, margin, reduction_number(reduction))


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    return torch.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction_number(reduction)
    )


def unfold(
    input: Tensor,
    kernel_size: List[int],
    dilation: List[int] = [1, 1],
    padding: List[int] = [0, 0],
    stride: List[int] = [1, 1],
) -> Tensor:
    return torch.im2col(input, kernel_size, dilation, padding, stride)


def fold(
    input: Tensor,
    output_size: List[int],
    kernel_size: List[int],
    dilation: List[int] = [1, 1],
    padding: List[int] = [0, 0],
    stride: List[int] = [1, 1],
) -> Tensor:
    return torch.col2im(input, output_size, kernel_size, dilation, padding, stride)
