"""What the loops of a kernel compute several times."""

MIN_FUNCTION = 5  # lines for which a function is shorter than to write them twice


class Repetitions:
    """Finds the values that are worth a function, as several loops over a row need them.

    Of the values that a loop computes again, those count that the loop needs for something new.
    """

    def __init__(self):
        self.first = {}  # by the key of a value: the first loop that computes it, and its lines
        self.again = set()
        self.depth = 0  # of values computed again within each other
        self.lines_again = 0

    def compute(self, key, make, writer):
        """Calls make(), which writes what the value needs."""
        loop = writer.loops
        is_again = self.first.get(key, (loop,))[0] != loop
        if is_again and self.depth == 0:
            self.again.add(key)
        self.depth += is_again
        before = writer.lines_in_loops() - self.lines_again
        made = make()
        own = writer.lines_in_loops() - self.lines_again - before
        self.depth -= is_again
        if is_again and self.depth == 0:
            self.lines_again += own - 1
        self.first.setdefault(key, (loop, own))
        return made

    def worth_a_function(self):
        return {key for key in self.again if self.first[key][1] >= MIN_FUNCTION}
