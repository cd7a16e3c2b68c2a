"""Finds operators whose results are decided by equal values or by the last bit of a value."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that return places of values.
PLACES = {"sort", "argsort", "topk", "kthvalue", "mode", "argmax", "argmin", "median", "nanmedian"}
# Operators that write values to places, the last one of several if they do not add up.
WRITES = {"scatter", "scatter_", "index_copy", "index_copy_", "index_put", "index_put_"}
# Operators that round, and the fraction at which their results jump.
ROUNDINGS = {"round": 0.5, "floor": 0.0, "ceil": 0.0, "trunc": 0.0, "floor_divide": 0.0}
# Data that lie on a grid have a large share of values at a jump, other data have next to none.
COMMON_SHARE = 0.05
MOST_ELEMENTS = 1 << 22


def is_integral(values):
    return bool((values == values.trunc()).all())


class TieWatch(TorchDispatchMode):
    """Watches the operators that run.

    equal: the names of operators that met equal values.
    overwritten: the names of operators that wrote several values to one place.
    jumps: the names of operators that rounded many values at a jump, with the largest share.
    """

    def __init__(self):
        super().__init__()
        self.equal = set()
        self.overwritten = set()
        self.jumps = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        values = args[0] if args else None
        is_known = isinstance(values, torch.Tensor) and not values.is_meta and values.dim() > 0
        if is_known and 0 < values.numel() <= MOST_ELEMENTS:
            names = [a.name for a in func._schema.arguments]
            given = dict(zip(names, args)) | kwargs
            if name in PLACES:
                self.watch_order(name, values.detach(), given)
            elif name in WRITES:
                self.watch_writes(name, given)
            elif name in ROUNDINGS and values.is_floating_point():
                self.watch_rounding(name, values.detach(), given)
        return func(*args, **kwargs)

    def watch_writes(self, name, given):
        places = given.get("index", given.get("indices"))
        if given.get("accumulate") or given.get("reduce") is not None:
            return
        if isinstance(places, torch.Tensor):
            dim = given["dim"] if places.dim() > 1 else 0
            repeats = bool((places.sort(dim).values.diff(dim=dim) == 0).any())
        else:
            places = [p for p in places if p is not None]
            if not places or any(p.dtype == torch.bool for p in places):
                return
            flat = torch.stack([p.flatten() for p in torch.broadcast_tensors(*places)])
            repeats = flat.size(1) > flat.unique(dim=1).size(1)
        if repeats:
            self.overwritten.add(name.removesuffix("_"))

    def watch_order(self, name, values, given):
        if name in ("median", "nanmedian") and "dim" not in given:
            return  # values alone
        dim = given.get("dim", None if name in ("argmax", "argmin") else -1)
        if dim is None:
            dim, values = 0, values.flatten()
        if isinstance(dim, int) and not given.get("stable"):
            ordered = values.sort(dim).values
            if ordered.size(dim) > 1 and bool((ordered.diff(dim=dim) == 0).any()):
                self.equal.add(name)

    def watch_rounding(self, name, values, given):
        if name == "floor_divide":
            other = torch.as_tensor(given["other"])
            if is_integral(values) and is_integral(other):
                return
            values = values / other
        values = values.double() * 10.0 ** given.get("decimals", 0)
        distance = (values - ROUNDINGS[name]).frac().abs()
        distance = torch.minimum(distance, 1 - distance)
        close = (distance <= 4 * torch.finfo(torch.float32).eps * values.abs()) & (values != 0)
        # Exact integers, such as those of an index, are not results of rounded divisions.
        if name != "round" and is_integral(values):
            return
        share = close.double().mean().item()
        if share >= COMMON_SHARE:
            self.jumps[name] = max(share, self.jumps.get(name, 0.0))

    def notes(self):
        """Returns notes for a user, one per kind of tie."""
        notes = []
        if self.equal:
            notes.append(
                f"results depend on the order of equal values ({', '.join(sorted(self.equal))}): a "
                "program that puts them in another order than PyTorch on the CPU is wrong_result"
            )
        if self.overwritten:
            notes.append(
                f"{', '.join(sorted(self.overwritten))} writes several values to one place: which "
                "one stays is not defined on a GPU, and a program that keeps another is "
                "wrong_result"
            )
        for name, share in sorted(self.jumps.items()):
            notes.append(
                f"{share:.0%} of the values that {name} gets from the file's inputs lie where its "
                "result jumps: a program may round these up or down, because an error in the last "
                "bit does the same. Inputs that do not lie on a grid avoid this"
            )
        return notes
