"""A task as the teacher knows it: read once, and lowered once for all variants that allow it."""

from typing import NamedTuple

from calls import CONVOLUTIONS, TRANSPOSED
from explaining import document, setting_lines
from host_program import HostProgram
from lowering import Lowered
from moves import BEST_GUESSES, STEPS, Moves, is_worth_kernels, settings_of
from reading import Reference


class Variant(NamedTuple):
    """text: the document. unfit: why it has no kernels, or "". lines: of the toml block."""

    text: str
    unfit: str
    moves: Moves
    program: HostProgram | None
    lines: list

    @property
    def settings(self):
        """The names of the settings that are on."""
        return settings_of(self.lines)


class Lesson:
    """Writes the variants of one task for one kind of device.

    unfit: why the reference cannot be read, or "".
    """

    def __init__(self, task, device):
        self.task, self.device = task, device
        self.reference, self.unfit = None, ""
        self.timed = next((k for k, case in enumerate(task["cases"]) if case["timed"]), 0)
        self.lowered = {}
        cases = [case["sizes"] for case in task["cases"]]
        try:
            self.reference = Reference(task["reference"], task["tensors"], cases)
        except Exception as e:  # what cannot be read is taken as it is
            self.unfit = str(e)

    def variant(self, number, seed):
        moves = Moves(number, seed, self.task["name"], self.device)
        program, unfit = None, self.unfit
        if self.reference is not None:
            if number < BEST_GUESSES and not is_worth_kernels(self.reference):
                moves.fuses = False
            if not STEPS.isdisjoint(s.operator for s in self.reference.statements):
                moves.fast_math = False
            if moves.fuses:
                try:
                    program = HostProgram(self._lowered(moves), moves.choices, self.timed)
                except Exception as e:  # whatever the rules trip over, the reference is right
                    unfit = f"{type(e).__name__}: {e}"
        lines = setting_lines(self.task, self.device, self.reference, moves, program)
        text = document(self.task, moves, program, lines)
        return Variant(text, unfit, moves, program, lines)

    def document_of(self, variant, analysis):
        """Returns the document of a variant with another analysis."""
        return document(self.task, variant.moves, variant.program, variant.lines, analysis)

    def variants(self, numbers, seed, most):
        """Returns up to `most` distinct variants of the numbers, and why one has no kernels."""
        found, unfit = {}, ""
        for number in numbers:
            if len(found) == most:
                break
            made = self.variant(number, seed)
            unfit = unfit or made.unfit
            found.setdefault(made.text, made)
        return list(found.values()), unfit

    def _lowered(self, moves):
        """Lowers the reference as the moves ask for where that makes a difference."""
        operators = {s.operator for s in self.reference.statements}
        folds = moves.folds or "batch_norm" not in operators
        channels_last = moves.channels_last and not operators.isdisjoint(
            {*CONVOLUTIONS, *TRANSPOSED}
        )
        if (folds, channels_last) not in self.lowered:
            parameters = {t["name"] for t in self.task["tensors"] if t["is_parameter"]}
            self.lowered[folds, channels_last] = Lowered(
                self.reference, self.device, parameters, folds, channels_last
            )
        return self.lowered[folds, channels_last]
