"""Finds operators whose results depend on the order of equal values."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that return places of values.
PLACES = {"sort", "argsort", "topk", "kthvalue", "mode"}
MOST_ELEMENTS = 1 << 22


class TieWatch(TorchDispatchMode):
    """Watches the operators that run. found: the names of those that met equal values."""

    def __init__(self):
        super().__init__()
        self.found = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        values = args[0] if args else None
        is_known = isinstance(values, torch.Tensor) and not values.is_meta and values.dim() > 0
        if name in PLACES and is_known and 0 < values.numel() <= MOST_ELEMENTS:
            names = [a.name for a in func._schema.arguments]
            given = dict(zip(names, args)) | kwargs
            dim = given.get("dim", -1)
            if isinstance(dim, int) and not given.get("stable"):
                ordered = values.detach().sort(dim).values
                if ordered.size(dim) > 1 and bool((ordered.diff(dim=dim) == 0).any()):
                    self.found.add(name)
        return func(*args, **kwargs)
