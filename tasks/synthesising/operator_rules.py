"""Rules for operators on values of any shape.

A rule takes a program and its current value, and returns the next value, or None if it does not
fit. Rules whose names end in `_in_vain` make work that a good variant need not do: an algebraic
identity, or a step that another one undoes.
"""

import math

from expressions import BINARY, LOSSES, REDUCTIONS, UNARY, filled
from network_rules import linear_layer
from program import reduced, scaled


def unary(p, v):
    words = p.random.choice(list(UNARY))
    return p.let(filled(UNARY[words], x=v.name), v.shape, words)


def affine(p, v):
    scale, shift = p.random.choice((0.125, 0.5, 1.5, 2.0)), p.random.choice((-1.0, 0.1, 0.5, 1.0))
    return p.let(f"{v.name} * {scale} + {shift}", v.shape, "scale and shift")


def binary(p, v):
    """Joins the value with an earlier one of its shape, a new input or a vector of parameters."""
    words = p.random.choice(list(BINARY))
    others = p.others_like(v)
    kind = p.random.random()
    if others and kind < 0.5:
        other = p.random.choice(others)
        said = words
    elif v.rank >= 2 and kind < 0.8:
        other, said = p.parameter(v.shape[-1:], "b"), f"{words} with a row vector"
    elif len(p.inputs) < 4:
        other, said = p.input(v.shape, "y"), words
    else:
        return None
    return p.let(filled(BINARY[words], x=v.name, y=other.name), v.shape, said)


def broadcast(p, v):
    """Joins a value with one that its own reduction gives."""
    if v.rank < 2:
        return None
    d = p.random.randrange(1, v.rank)
    words, joined = p.random.choice(list(REDUCTIONS)), p.random.choice(list(BINARY))
    kept = reduced(v.shape, [d], True)
    part = p.let(
        filled(REDUCTIONS[words], x=v.name, D=str(d), K="True"), kept, f"{words} along {d}"
    )
    return p.let(filled(BINARY[joined], x=v.name, y=part.name), v.shape, f"{joined} with it")


def reduction(p, v):
    if v.rank < 2:
        return None
    d = p.random.randrange(1, v.rank)
    words = p.random.choice(list(REDUCTIONS))
    shape = reduced(v.shape, [d], False)
    return p.let(
        filled(REDUCTIONS[words], x=v.name, D=str(d), K="False"), shape, f"{words} along {d}"
    )


def softmax(p, v):
    if v.rank < 2:
        return None
    name = p.random.choice(("softmax", "log_softmax"))
    return p.let(f"torch.{name}({v.name}, dim={v.rank - 1})", v.shape, name.replace("_", " "))


def row_norm(p, v):
    """Normalizes rows: layer norm, RMS norm, or by their length."""
    if v.rank < 2:
        return None
    last = v.rank - 1
    kind = p.random.randrange(3)
    if kind == 0:
        weight, bias = p.parameter(v.shape[-1:], "g"), p.parameter(v.shape[-1:], "b")
        mean = p.let(
            f"torch.mean({v.name}, dim=[{last}], keepdim=True)", (*v.shape[:-1], 1), "mean"
        )
        centered = p.let(f"{v.name} - {mean.name}", v.shape, "centring")
        spread = p.let(
            f"torch.mean({centered.name} * {centered.name}, dim=[{last}], keepdim=True)",
            mean.shape,
            "variance",
        )
        text = f"{centered.name} * torch.rsqrt({spread.name} + 1e-5) * {weight.name} + {bias.name}"
        return p.let(text, v.shape, "layer norm")
    if kind == 1:
        weight = p.parameter(v.shape[-1:], "g")
        root = p.let(
            f"torch.rsqrt(torch.mean({v.name} * {v.name}, dim=[{last}], keepdim=True) + 1e-6)",
            (*v.shape[:-1], 1),
            "root mean square",
        )
        return p.let(f"{v.name} * {root.name} * {weight.name}", v.shape, "RMS norm")
    length = f"torch.sqrt(torch.sum({v.name} * {v.name}, dim=[{last}], keepdim=True) + 1e-6)"
    return p.let(f"{v.name} / {length}", v.shape, "rows of length one")


def linear(p, v):
    """A product with a matrix of weights, with or without a bias."""
    if v.rank not in (2, 3) or v.kind != "float":
        return None
    out = p.random.choice((64, 128, 256, 512, 1024))
    inner = p.timed_size(v.shape[-1])
    if inner < 16:
        return None
    if p.random.random() < 0.4 and isinstance(v.shape[-1], int):
        return linear_layer(p, v, out, True)
    weight = p.parameter((v.shape[-1], out), "w", scaled(inner))
    text, words = f"torch.matmul({v.name}, {weight.name})", f"product with {out} columns"
    if p.random.random() < 0.6:
        bias = p.parameter((out,), "b")
        text, words = f"{text} + {bias.name}", f"{words} and a bias"
    return p.let(text, (*v.shape[:-1], out), words)


def gram(p, v):
    """Products of all pairs of rows inside of a batch."""
    if v.rank != 3 or p.timed_size(v.shape[1]) > 1024:
        return None
    inner = p.timed_size(v.shape[2])
    text = f"torch.bmm({v.name}, {v.name}.transpose(1, 2)) * {1 / math.sqrt(inner):.4g}"
    return p.let(text, (v.shape[0], v.shape[1], v.shape[1]), "products of all pairs of rows")


def attention(p, v):
    """Attention of a sequence to itself with products of weights, with or without a mask."""
    if v.rank != 3 or p.timed_size(v.shape[1]) > 1024:
        return None
    inner, width = p.timed_size(v.shape[2]), p.random.choice((32, 64))
    made = []
    for name in ("query", "key", "value"):
        weight = p.parameter((v.shape[2], width), "w", scaled(inner))
        made.append(p.let(f"torch.matmul({v.name}, {weight.name})", (*v.shape[:2], width), name))
    q, k, u = (m.name for m in made)
    square = (v.shape[0], v.shape[1], v.shape[1])
    scores = p.let(
        f"torch.bmm({q}, {k}.transpose(1, 2)) * {1 / math.sqrt(width):.4g}", square, "scores"
    )
    if p.random.random() < 0.5:
        scores = p.let(
            f"{scores.name} - 1e4 * torch.triu(torch.ones_like({scores.name}), 1)",
            square,
            "causal mask",
        )
    weights = p.let(f"torch.softmax({scores.name}, dim=2)", square, "attention weights")
    return p.let(f"torch.bmm({weights.name}, {u})", (*v.shape[:2], width), "attention")


def scan(p, v):
    if v.rank < 2:
        return None
    d = v.rank - 1
    kind = p.random.choice(("cumsum", "cumprod", "cummax", "reverse"))
    if kind == "cumsum":
        return p.let(f"torch.cumsum({v.name}, dim={d})", v.shape, "running sum")
    if kind == "cumprod":
        text = f"torch.cumprod(1.0 - 0.01 * torch.sigmoid({v.name}), dim={d})"
        return p.let(text, v.shape, "running product")
    if kind == "cummax":
        return p.let(f"torch.cummax({v.name}, dim={d})[0]", v.shape, "running maximum")
    text = f"torch.flip(torch.cumsum(torch.flip({v.name}, [{d}]), dim={d}), [{d}])"
    return p.let(text, v.shape, "running sum from the end")


def gather(p, v):
    """Takes rows by numbers that are an input."""
    if v.rank != 2 or not isinstance(v.shape[0], str) or len(p.inputs) > 3:
        return None
    index = p.input((v.shape[0],), "i", ("integers", 0, v.shape[0]), "index")
    return p.let(f"torch.index_select({v.name}, 0, {index.name})", v.shape, "rows by number")


def shift(p, v):
    """Joins a value with itself, moved along a dimension."""
    if v.rank < 2:
        return None
    d = p.random.randrange(1, v.rank)
    joined = p.random.choice(list(BINARY))
    moved = p.let(f"torch.roll({v.name}, [1], [{d}])", v.shape, "neighbors")
    return p.let(filled(BINARY[joined], x=v.name, y=moved.name), v.shape, f"{joined} with them")


def loss(p, v):
    if v.rank != 2 or len(p.inputs) > 2:
        return None
    words = p.random.choice(list(LOSSES))
    target = p.input(v.shape, "y")
    return p.let(filled(LOSSES[words], x=v.name, y=target.name, D="1"), v.shape[:1], words)


def outer(p, v):
    """Makes a matrix of two vectors."""
    if v.rank != 1:
        return None
    columns = p.size("M", p.random.choice((256, 512, 1024)))
    other = p.input((columns,), "y")
    text = filled(p.random.choice(list(BINARY.values())), x="(a)", y="(b)")
    text = text.replace("(a)", f"{v.name}.unsqueeze(1)").replace(
        "(b)", f"{other.name}.unsqueeze(0)"
    )
    return p.let(text, (v.shape[0], columns), "all pairs with a vector")


def sum_of_product_in_vain(p, v):
    """Sums the columns of a product: the weights may be summed first."""
    if v.rank != 2:
        return None
    inner = p.timed_size(v.shape[1])
    weight = p.parameter((v.shape[1], 512), "w", scaled(inner))
    made = p.let(f"torch.matmul({v.name}, {weight.name})", (v.shape[0], 512), "product")
    name = p.random.choice(("sum", "mean"))
    return p.let(f"torch.{name}({made.name}, dim=[1])", v.shape[:1], f"{name} of its columns")


def diagonal_product_in_vain(p, v):
    """Multiplies with a diagonal matrix that is written out."""
    if v.rank != 2:
        return None
    number = p.parameter(v.shape[-1:], "d")
    text = f"torch.matmul({v.name}, torch.diag({number.name}))"
    return p.let(text, v.shape, "product with a diagonal matrix")


def triangle_in_vain(p, v):
    """Multiplies with a matrix of which half is zero."""
    if v.rank != 2 or not isinstance(v.shape[1], str):
        return None
    inner = p.timed[v.shape[1]]
    weight = p.parameter((v.shape[1], v.shape[1]), "w", scaled(inner))
    name = p.random.choice(("tril", "triu"))
    return p.let(
        f"torch.matmul({v.name}, torch.{name}({weight.name}))", v.shape, "product with a triangle"
    )


def identity_in_vain(p, v):
    kinds = [
        (f"torch.dropout({v.name}, 0.3, False)", "dropout that is off"),
        (f"{v.name} * 1.0 + 0.0", "scale by one"),
        (f"torch.relu({v.name}) - torch.relu(-{v.name})", "both halves of a relu"),
    ]
    if v.rank >= 2:
        d = v.rank - 1
        turned = f".transpose({d - 1}, {d}).contiguous()"
        kinds += [
            (
                f"{v.name}{turned}{turned}",
                "two transpositions",
            ),
            (f"torch.flip(torch.flip({v.name}, [{d}]), [{d}])", "two reversals"),
            (
                f"{v.name} * torch.sum(torch.softmax({v.name}, dim={d}), dim=[{d}], keepdim=True)",
                "product with the sum of a softmax",
            ),
        ]
    text, words = p.random.choice(kinds)
    return p.let(text, v.shape, words)


def last_of_scan_in_vain(p, v):
    if v.rank != 2:
        return None
    made = p.let(f"torch.cumsum({v.name}, dim=1)", v.shape, "running sum")
    return p.let(f"{made.name}[:, -1]", v.shape[:1], "its last column")


def sorted_extreme_in_vain(p, v):
    if v.rank != 2 or p.timed_size(v.shape[1]) > 2048:
        return None
    made = p.let(f"torch.sort({v.name}, dim=1)[0]", v.shape, "sorted rows")
    return p.let(f"{made.name}[:, {p.random.choice((0, -1))}]", v.shape[:1], "their extreme")
