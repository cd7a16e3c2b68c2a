"""The reductions of evaluation/compile/device_functions.cuh, in which kernels keep their state."""

from typing import NamedTuple


class Reduction(NamedTuple):
    """type: in namespace device. fields: of the state, the result first. has_type: of its sums."""

    type: str
    fields: tuple
    has_type: bool = False
    takes_place: bool = False

    def state(self, accumulator):
        """Returns the C type of a state whose sums have the type `accumulator`."""
        is_other = self.has_type and accumulator != "float"
        return f"device::{self.type}<{accumulator}>" if is_other else f"device::{self.type}"


REDUCTIONS = {
    "sum": Reduction("sum", ("total",), has_type=True),
    "prod": Reduction("product", ("total",), has_type=True),
    "max": Reduction("largest", ("best",)),
    "min": Reduction("smallest", ("best",)),
    "argmax": Reduction("place_of_largest", ("place", "best"), takes_place=True),
    "argmin": Reduction("place_of_smallest", ("place", "best"), takes_place=True),
    "exponentials": Reduction("exponentials", ("largest", "total"), has_type=True),
    "moments": Reduction("moments", ("mean", "squares", "count"), has_type=True),
}
