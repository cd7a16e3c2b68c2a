"""The structure of references: which operators they apply to which, whatever the names and sizes.

Tasks that are too close to given ones are left out, so that what a policy learns from synthesised
tasks says something about the given ones (contamination control).
"""

import hashlib

import torch
from torchscript_text import runnable

MAX_GRAM = 3
# Operators that only look at memory in another way.
VIEWS = {
    "alias", "expand", "expand_as", "flatten", "contiguous", "detach", "permute", "reshape",
    "numpy_T", "select", "slice", "squeeze", "t", "transpose", "unsqueeze", "view", "view_as", "to",
}  # fmt: skip
# Names of one operation.
SAME = {
    "absolute": "abs", "addmm": "linear", "amax": "max", "amin": "min", "bmm": "matmul",
    "mm": "matmul", "mv": "matmul", "multiply": "mul", "subtract": "sub", "divide": "div",
    "true_divide": "div", "rsub": "sub", "clamp_min": "clamp", "clamp_max": "clamp",
    "convolution": "conv", "_convolution": "conv", "conv1d": "conv", "conv2d": "conv",
    "conv3d": "conv", "maximum": "max", "minimum": "min", "square": "mul", "pow": "mul",
    "max_pool1d": "max_pool", "max_pool2d": "max_pool", "max_pool3d": "max_pool",
    "avg_pool1d": "avg_pool", "avg_pool2d": "avg_pool", "avg_pool3d": "avg_pool",
    "reciprocal": "div", "matmul": "matmul",
}  # fmt: skip


class Structure:
    """The structure of one reference.

    canonical: a hash of its graph. grams: its paths of up to three operators, with their numbers.
    operators: the number of its operators.

    The constructor raises RuntimeError if the reference does not compile.
    """

    def __init__(self, reference):
        graph = torch.jit.CompilationUnit(runnable(reference)).forward.graph
        torch._C._jit_pass_inline(graph)
        self.operators = 0
        self.grams = {}
        hashes, paths = {}, {}
        for value in graph.inputs():
            hashes[value.debugName()] = "argument"
            paths[value.debugName()] = [()]
        self._walk(graph, hashes, paths)
        outputs = [hashes.get(value.debugName(), "none") for value in graph.outputs()]
        self.canonical = hashlib.sha256("|".join(outputs).encode()).hexdigest()

    def _walk(self, block, hashes, paths):
        for node in block.nodes():
            kind = node.kind()
            for inner in node.blocks():
                self._walk(inner, hashes, paths)
            name = kind.split("::")[-1].rstrip("_")
            inputs = [v.debugName() for v in node.inputs() if v.debugName() in hashes]
            if not kind.startswith("aten::") or name in VIEWS:
                # Lists and views pass on what they hold.
                joined = "(" + ",".join(sorted(hashes[v] for v in inputs)) + ")" if inputs else None
                for output in node.outputs():
                    if joined:
                        hashes[output.debugName()] = (
                            hashes[inputs[0]] if len(inputs) == 1 else joined
                        )
                        paths[output.debugName()] = [p for v in inputs for p in paths[v]][:8]
                continue
            if not inputs:
                continue  # arithmetic of sizes
            name = SAME.get(name, name)
            self.operators += 1
            text = name + "(" + ",".join(sorted(hashes[v] for v in inputs)) + ")"
            made = hashlib.sha256(text.encode()).hexdigest()[:24]
            before = [p for v in inputs for p in paths[v]]
            for path in {p[-(MAX_GRAM - 1) :] for p in before}:
                for length in range(len(path) + 1):
                    gram = (*path[len(path) - length :], name)
                    self.grams[gram] = self.grams.get(gram, 0) + 1
            after = [(*p, name)[-(MAX_GRAM - 1) :] for p in before]
            for output in node.outputs():
                hashes[output.debugName()] = made
                paths[output.debugName()] = sorted(set(after))[:8]


def similarity(a, b):
    """Returns the share of paths that two structures have in common, from 0 to 1: the sum of the
    smaller numbers over the sum of the larger ones. Longer paths weigh more."""
    common = total = 0
    for gram in a.grams.keys() | b.grams.keys():
        x, y = a.grams.get(gram, 0), b.grams.get(gram, 0)
        common += len(gram) * min(x, y)
        total += len(gram) * max(x, y)
    return common / total if total else 1.0
