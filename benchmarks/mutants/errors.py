"""Compares outputs with those of a task's reference, in units of the reference's rounding error.

The unit of an element is half a rounding of it, or the largest error of the reference in its native
types over several calls whose arguments differ by one rounding, if that is larger. Errors are
differences from float64. So cancellation makes a unit larger, but only of the elements where the
reference cancels.
"""

import torch
from operators import forward_of, outputs_of

# Errors that two orders of the same operations may have in float64, in units of float64.
FLOAT64_UNITS = 64.0
INFINITE = float("inf")
MIN_SHARE = 0.01  # of the typical unit of its row that an element's unit has at least


class Difference:
    """units: the largest error of the program in the task's types.

    is_exact: whether the program and the reference agree in float64, up to its roundings.
    """

    def __init__(self, units=0.0, is_exact=True):
        self.units, self.is_exact = units, is_exact


def epsilon_of(dtype):
    return torch.finfo(dtype).eps


class Reference:
    """The outputs of a reference for given arguments, and their units.

    calls: number of further calls that the units are taken from.
    """

    def __init__(self, source, arguments, calls=8):
        native, float64 = forward_of(source), forward_of(source, is_float64=True)
        with torch.inference_mode():
            self.arguments = arguments
            self.float64 = outputs_of(float64(*widened(arguments)))
            self.native = outputs_of(native(*copied(arguments)))
            self.units = [self._rounding(t, e) for t, e in zip(self.native, self.float64)]
            self._add_errors(self.native, self.float64)
            generator = torch.Generator().manual_seed(1)
            for _ in range(calls):
                near = [perturbed(x, generator) for x in arguments]
                self._add_errors(
                    outputs_of(native(*copied(near))), outputs_of(float64(*widened(near)))
                )
        self.units = [None if unit is None else raised(unit) for unit in self.units]

    @staticmethod
    def _rounding(native, float64):
        """Returns half a rounding of each element, or None if the output has no floats."""
        if not native.is_floating_point():
            return None
        half = 0.5 * epsilon_of(native.dtype) * float64.double().abs()
        return half.clamp_min(torch.finfo(native.dtype).tiny)

    def _add_errors(self, native, float64):
        for i, unit in enumerate(self.units):
            if unit is not None and native[i].shape == unit.shape:
                errors = (native[i].double() - float64[i].double()).abs()
                self.units[i] = torch.maximum(unit, errors.nan_to_num(0.0, 0.0, 0.0))

    def difference(self, given, given_float64=None, known_errors=None):
        """Returns the Difference of a program's outputs, in the task's types and in float64.

        known_errors: for each output, errors that are allowed in addition to the units.
        """
        worst = Difference()
        if len(given) != len(self.native):
            return Difference(INFINITE, False)
        for i, (native, float64, unit) in enumerate(zip(self.native, self.float64, self.units)):
            if given[i].shape != native.shape or given[i].dtype != native.dtype:
                return Difference(INFINITE, False)
            if unit is None:
                is_equal = torch.equal(given[i], native) or torch.equal(
                    given[i], float64.to(native.dtype)
                )
                worst.units = worst.units if is_equal else INFINITE
                worst.is_exact = worst.is_exact and is_equal
                continue
            if known_errors is not None and known_errors[i] is not None:
                unit = torch.maximum(unit, known_errors[i])
            worst.units = max(worst.units, ratio(given[i], native, float64, unit))
            if given_float64 is not None:
                scale = FLOAT64_UNITS * epsilon_of(torch.float64) / epsilon_of(native.dtype)
                is_exact = ratio(given_float64[i], float64, float64, unit * scale) <= 1
                worst.is_exact = worst.is_exact and is_exact
        return worst

    def errors_of(self, outputs):
        """Returns the errors of a program's outputs, None where an output has no floats."""
        return [
            None
            if unit is None
            else (t.double() - float64.double()).abs().nan_to_num(0.0, 0.0, 0.0)
            for t, float64, unit in zip(outputs, self.float64, self.units)
        ]


def raised(unit):
    """Raises the units that are much smaller than the others of their row.

    A reference makes no error at all where a ReLU has cut off a value next to zero, for example.
    """
    if unit.dim() == 0 or unit.numel() == 0:
        return unit
    counted = torch.where(unit > 2 * unit.min(), unit, torch.nan)
    typical = counted.nanmedian(dim=-1, keepdim=True).values.nan_to_num(0.0)
    return torch.maximum(unit, MIN_SHARE * typical)


def ratio(given, native, float64, unit):
    """Returns the largest error over its unit.

    Where the reference is finite in only one of its two types, any value is right.
    """
    given, native, float64 = given.double(), native.double(), float64.double()
    is_finite = native.isfinite() & float64.isfinite()
    is_special = ~native.isfinite() & ~float64.isfinite()
    same = (
        (given == native)
        | (given == float64)
        | (given.isnan() & (native.isnan() | float64.isnan()))
    )
    if bool((is_special & ~same).any()) or bool((is_finite & ~given.isfinite()).any()):
        return INFINITE
    errors = torch.where(is_finite, (given - float64).abs(), torch.zeros_like(float64))
    return float((errors / unit).max()) if errors.numel() > 0 else 0.0


def widened(arguments):
    return [x.double() if x.is_floating_point() else x.clone() for x in arguments]


def copied(arguments):
    return [x.clone() for x in arguments]


def perturbed(x, generator):
    """Returns a tensor whose elements differ by up to one rounding."""
    if not x.is_floating_point():
        return x
    noise = torch.rand(x.shape, generator=generator, dtype=torch.float64) * 2 - 1
    return (x.double() * (1 + epsilon_of(x.dtype) * noise)).to(x.dtype)
