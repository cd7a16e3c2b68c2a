"""Arguments of calls that show whether a survivor computes something else: as the task declares
them, as the judge changes them, and of mixed magnitudes."""

import zlib

import torch
from torchscript_text import runnable

DECLARED = ("declared", "declared again")
# The judge's changes to normal and uniform inputs, by the name that task files list, and what it
# does not do. It changes numbers that an expression takes less than others.
JUDGES = {
    "shifted": "shifted",
    "small": "small",
    "outliers": "outliers",
    "single outlier": "outliers",
    "rows of mixed magnitude": "mixed",
    "columns of mixed magnitude": "mixed",
    "sparse": "sparse",
}
OTHERS = (
    "large", "shifted expressions", "small expressions", "blocks of mixed magnitude",
    "elements of mixed magnitude", "large outlier", "alternating signs",
)  # fmt: skip
CONSTANTS = "other constants"  # parameters that the task declares constant have other values
# The distributions that show most of what there is to show.
TELLING = ("declared", "rows of mixed magnitude", "single outlier", CONSTANTS)


def labels_of(task, most):
    """Returns the names of the distributions in which a task's inputs can be drawn.

    Those that the judge draws come first. most: how many are returned; the most telling ones stay.
    """
    labels = [*DECLARED]
    if any(takes_changes(t) for t in task.tensors):
        labels += [*JUDGES, *OTHERS]
    if any(t.is_parameter and t.is_constant and t.is_float for t in task.tensors):
        labels.append(CONSTANTS)
    kept = sorted(labels, key=lambda label: label not in TELLING)[:most]
    return [label for label in labels if label in kept]


def is_judges(task, label):
    """Returns whether the judge draws arguments like these for a task."""
    listed = "weights" if label == CONSTANTS else JUDGES.get(label)
    return label in DECLARED or listed in task.distributions


def takes_changes(tensor):
    return not tensor.is_parameter and tensor.is_float and tensor.init.of in {"normal", "uniform"}


def draw(task, sizes, label):
    """Returns the arguments of a call, inputs first."""
    seed = zlib.crc32(f"{task.name} {sorted(sizes.items())} {label}".encode())
    generator = torch.Generator().manual_seed(seed)
    return [draw_tensor(t, sizes, label, generator) for t in task.tensors]


def draw_tensor(tensor, sizes, label, generator):
    shape = tensor.shape_in(sizes)
    if tensor.data_file is not None:
        return tensor.data()
    x = tensor.init.raw(shape, sizes, generator)
    if tensor.is_fixed:
        pass
    elif takes_changes(tensor):
        is_gentle = bool(tensor.init.expr) and label in JUDGES
        x = changed(x, label.removesuffix(" expressions"), generator, is_gentle)
    elif label == CONSTANTS and tensor.is_parameter and tensor.is_constant and tensor.is_float:
        # A variance or a scale stays positive, and a mean or a bias gets either sign.
        noise = torch.rand(shape, generator=generator)
        x = x * (0.5 + noise) + torch.where(x == 0, noise - 0.5, torch.zeros_like(x))
    if tensor.init.expr:
        source = f"def f(x: Tensor) -> Tensor:\n    return {tensor.init.expr}\n"
        x = torch.jit.CompilationUnit(runnable(source)).f(x)
    if tensor.is_float and tensor.dtype != torch.float32:
        limit = torch.finfo(tensor.dtype).max / 16
        x = x.clamp(-limit, limit)
    return x.to(tensor.dtype).contiguous()


def powers(shape, generator, spread):
    """Returns random powers of two from 2^-spread to 2^spread."""
    return 2.0 ** torch.randint(-spread, spread + 1, shape, generator=generator)


def changed(x, label, generator, is_gentle):
    """Returns values of a distribution for values as declared."""
    if label in DECLARED or label == CONSTANTS or x.numel() == 0:
        return x
    if label == "shifted":
        return 2 * x + 1 if is_gentle else 10 * x + 25
    if label == "small":
        return x / (8 if is_gentle else 1000)
    if label == "large":
        return 64 * x
    if label == "alternating signs":
        signs = torch.arange(x.numel()).reshape(x.shape) % 2 * 2 - 1
        return x.abs() * signs
    if label == "sparse":
        return x * (torch.rand(x.shape, generator=generator) < 0.05)
    if label in {"outliers", "single outlier", "large outlier"}:
        count = max(1, x.numel() // 5000) if label == "outliers" else 1
        places = torch.randint(0, x.numel(), (count,), generator=generator)
        sign = torch.randint(0, 2, (count,), generator=generator) * 2.0 - 1
        x = x.clone()
        distance = 1e4 if label == "large outlier" else 8.0 if is_gentle else 500.0
        x.view(-1)[places] += sign * distance
        return x
    shape = [1] * x.dim()
    if label == "rows of mixed magnitude":
        shape[:1] = x.shape[:1]
    elif label == "columns of mixed magnitude":
        shape[-1:] = x.shape[-1:]
    elif label == "elements of mixed magnitude":
        shape = list(x.shape)
    elif label == "blocks of mixed magnitude":
        scales = powers([-(-x.numel() // 16)], generator, 8).repeat_interleave(16)
        return x * scales[: x.numel()].reshape(x.shape)
    return x * powers(shape, generator, 3 if is_gentle else 8)
