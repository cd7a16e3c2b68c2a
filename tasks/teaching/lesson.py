"""A task as the teacher knows it: read once, and lowered once for all variants that allow it."""

from calls import CONVOLUTIONS, TRANSPOSED
from explaining import document
from host_program import HostProgram
from lowering import Lowered
from moves import BEST_GUESSES, Moves, is_worth_kernels
from reading import Reference


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
        """Returns the document of a variant, and why it has no kernels of its own."""
        moves = Moves(number, seed, self.task["name"], self.device)
        program, unfit = None, self.unfit
        if self.reference is None:
            return document(self.task, self.device, None, moves, None), unfit
        if number < BEST_GUESSES and not is_worth_kernels(self.reference):
            moves.fuses = False
        if moves.fuses:
            try:
                program = HostProgram(self._lowered(moves), moves.choices, self.timed)
            except Exception as e:  # whatever the rules trip over, the reference is right
                unfit = f"{type(e).__name__}: {e}"
        return document(self.task, self.device, self.reference, moves, program), unfit

    def variants(self, numbers, seed, most):
        """Returns up to `most` distinct documents of the numbers, and why one has no kernels."""
        documents, unfit = [], ""
        for number in numbers:
            if len(documents) == most:
                break
            text, why = self.variant(number, seed)
            unfit = unfit or why
            if text not in documents:
                documents.append(text)
        return documents, unfit

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
