"""Writes COUNT modules into FOLDER for timing `hone task import`.

The modules are those of tests/importing/modules in turn, each with another function of its outputs.

usage: python3 benchmarks/import_variants.py FOLDER COUNT
"""

import pathlib
import sys

# The functions of an output y.
TAILS = [
    "torch.tanh(y)",
    "y * 0.5 + 1.0",
    "torch.sigmoid(y) * y",
    "y - y.mean()",
    "torch.nn.functional.softplus(y)",
    "y.abs().sqrt()",
    "y.clamp(-1, 1)",
    "y / (1.0 + y * y)",
    "torch.relu(y) + y.sum()",
    "torch.exp(-y * y)",
    "torch.where(y > 0, y, 0.1 * y)",
    "torch.cos(y)",
]

# The code that is appended to a module's file.
APPENDED = """

_Base = Model


class Model(_Base):
    def forward(self, *inputs):
        def tail(y):
            return {tail} if isinstance(y, torch.Tensor) and y.is_floating_point() else y

        return torch.utils._pytree.tree_map(tail, super().forward(*inputs))
"""


def main():
    """Writes the files."""
    folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    modules = sorted(
        (pathlib.Path(__file__).resolve().parent.parent / "tests" / "importing" / "modules").glob(
            "*.py"
        )
    )
    for i in range(count):
        module = modules[i % len(modules)]
        text = module.read_text().replace("super(Model, self)", "super()") + APPENDED.format(
            tail=TAILS[(i // len(modules) + i) % len(TAILS)]
        )
        (folder / f"{i}_{module.stem}.py").write_text(text)


if __name__ == "__main__":
    main()
