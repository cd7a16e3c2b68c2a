"""Writes C in nested blocks."""

import re

from c_text import bare

NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*")
DECLARATION = re.compile(r"(?:const )?[\w:<>]+(?: long)? (\w+)(?: = .*)?;")
LOOP = re.compile(r"for \((?:int|long long) (\w+) = .*")


class Scope:
    """A block of C. begin: its place in the lines of the scope around it."""

    def __init__(self, begin=0, names=()):
        self.begin = begin
        self.lines = []
        self.names = set(names)
        self.known = {}  # expressions by what they say


class Writer:
    """Statements are declared in the outermost block that has what they need, in front of the loop
    that is open there: what does not change in a loop is computed once.
    """

    def __init__(self):
        self.scopes = [Scope()]

    def emit(self, line):
        self._emit_at(len(self.scopes) - 1, line)

    def _emit_at(self, depth, line):
        declared = DECLARATION.fullmatch(line)
        if declared:
            self.scopes[depth].names.add(declared[1])
        self._insert(depth, [line])

    def _insert(self, depth, lines):
        """Adds lines to an open scope, in front of the scope that is open in it."""
        within = self.scopes[depth + 1 : depth + 2]
        at = within[0].begin if within else len(self.scopes[depth].lines)
        self.scopes[depth].lines[at:at] = lines
        for scope in within:
            scope.begin += len(lines)

    def fresh(self, stem, of=None):
        """Returns a name that is free in all open scopes. of: what it belongs to, by name."""
        taken = {name for scope in self.scopes for name in scope.names}
        number = 1
        if of is None or not of.isidentifier():
            while f"{stem}{number}" in taken:
                number += 1
            return f"{stem}{number}"
        name = f"{stem}_{of}"
        while name in taken:
            number += 1
            name = f"{stem}_{of}_{number}"
        return name

    def open(self, header):
        lines = self.scopes[-1].lines
        has_pragma = bool(lines) and lines[-1].startswith("#pragma")
        lines.append(header + " {")
        self.scopes.append(Scope(len(lines) - 1 - has_pragma, [LOOP.fullmatch(header)[1]]))

    def close(self):
        lines = self.scopes.pop().lines
        self.scopes[-1].lines += [*("  " + line for line in lines), "}"]

    def drop_unused(self, name):
        """Removes the declaration of a name from the innermost scope if nothing there needs it."""
        lines = self.scopes[-1].lines
        uses = [k for k, line in enumerate(lines) if name in NAME.findall(line)]
        if len(uses) == 1:
            del lines[uses[0]]

    def lines(self):
        return self.scopes[0].lines

    def _depth_of(self, text):
        """Returns the number of the innermost scope whose names an expression contains."""
        names = set(NAME.findall(text))
        return max(k for k, scope in enumerate(self.scopes) if k == 0 or names & scope.names)

    def _remembered(self, key, make):
        for scope in reversed(self.scopes):
            if key in scope.known:
                return scope.known[key]
        made = make()
        self.scopes[self._depth_of(made)].known[key] = made
        return made

    def declare(self, ctype, text, stem, of=None):
        depth = self._depth_of(text)
        name = self.fresh(stem, of)
        self._emit_at(depth, f"const {ctype} {name} = {bare(text)};")
        return name
