"""The tokens of a cuda block, and where its statements, loops and subscripts begin and end."""

import bisect
import re

TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<directive>\#[^\n]*(?:\\\n[^\n]*)*)
      | (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
      | (?P<number>(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<sign><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|::|.)""",
    re.VERBOSE | re.DOTALL,
)
TYPES = {
    "float", "double", "int", "unsigned", "long", "short", "char", "bool", "half", "size_t",
    "float2", "float4", "int2", "int4", "__half", "__half2", "__nv_bfloat16", "int64_t",
    "uint32_t", "int32_t", "uint64_t", "auto", "const", "void",
}  # fmt: skip
INTEGERS = {"int", "unsigned", "long", "short", "size_t", "int64_t", "uint32_t", "int32_t"}
OPENING = {"(": ")", "[": "]", "{": "}"}


class Token:
    def __init__(self, text, kind, begin):
        self.text, self.kind, self.begin = text, kind, begin

    @property
    def end(self):
        return self.begin + len(self.text)


class Source:
    """The tokens of a cuda block without white space and comments. Positions are token numbers."""

    def __init__(self, text):
        self.text = text
        self.tokens = [
            Token(found[0], found.lastgroup, found.start())
            for found in TOKEN.finditer(text)
            if found.lastgroup != "space"
        ]
        self._lines = [m.start() for m in re.finditer("\n", text)]
        self.partner = self._match()

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, position):
        """Returns the text of a token, empty outside of the block."""
        return self.tokens[position].text if 0 <= position < len(self.tokens) else ""

    def kind(self, position):
        return self.tokens[position].kind if 0 <= position < len(self.tokens) else ""

    def line(self, position):
        return bisect.bisect_left(self._lines, self.tokens[position].begin) + 1

    def _match(self):
        """Returns the closing bracket of each opening one, and the other way round."""
        partner, stack = {}, []
        for i in range(len(self.tokens)):
            text = self[i]
            if text in OPENING:
                stack.append(i)
            elif text in OPENING.values() and stack:
                first = stack.pop()
                partner[first], partner[i] = i, first
        return partner

    def span(self, first, last):
        """Returns the text from token `first` up to, but without, token `last`."""
        if first >= last:
            return ""
        return self.text[self.tokens[first].begin : self.tokens[last - 1].end]

    def replaced(self, first, last, by):
        """Returns the block with the tokens from `first` up to `last` replaced."""
        begin = self.tokens[first].begin
        end = self.tokens[last - 1].end if last > first else begin
        return self.text[:begin] + by + self.text[end:]

    def find(self, text):
        return [i for i in range(len(self.tokens)) if self[i] == text]

    def statement_end(self, first):
        """Returns the position behind the statement that begins at `first`."""
        if self[first] == "{":
            return self.partner.get(first, len(self) - 1) + 1
        if self[first] in {"for", "if", "while"} and self[first + 1] == "(":
            end = self.statement_end(self.partner.get(first + 1, len(self) - 2) + 1)
            return self.statement_end(end + 1) if self[end] == "else" else end
        if self.kind(first) == "directive":
            return self.statement_end(first + 1)
        at = first
        while at < len(self) and self[at] != ";":
            at = self.partner.get(at, at) + 1 if self[at] in OPENING else at + 1
        return min(at + 1, len(self))

    def statement_begin(self, position):
        """Returns where the statement without braces that holds `position` begins."""
        at = position
        while at > 0:
            before = self[at - 1]
            if before in {";", "{", "}", "else"} or self.kind(at - 1) == "directive":
                return at
            if before == ")":
                opening = self.partner.get(at - 1, 0)
                if self[opening - 1] in {"for", "if", "while"}:
                    return at
                at = opening
            else:
                at -= 1
        return at

    def loops(self):
        """Yields (for, first semicolon, second semicolon, closing parenthesis) of each loop."""
        for i in self.find("for"):
            if self[i + 1] != "(" or i + 1 not in self.partner:
                continue
            closing = self.partner[i + 1]
            separators, at = [], i + 2
            while at < closing:
                if self[at] == ";":
                    separators.append(at)
                at = self.partner.get(at, at) + 1 if self[at] in OPENING else at + 1
            if len(separators) == 2:
                yield i, *separators, closing

    def subscripts(self):
        """Yields the opening brackets of subscripts, not of declarations."""
        for i in self.find("["):
            is_declared = self[i - 2] in TYPES or self[i - 2] in {"*", "__restrict__", ","}
            if self.kind(i - 1) == "name" and i in self.partner and not is_declared:
                yield i

    def integers(self, within=None):
        """Returns the names that are declared as integers.

        within: a position; only names that the kernel declares in front of it.
        """
        first, last = 0, len(self)
        if within is not None:
            first = max((i for i in self.find("__global__") if i < within), default=0)
            last = within
        return {
            self[i + 1]
            for i in range(first, last)
            if self[i] in INTEGERS and self.kind(i + 1) == "name" and self[i + 2] != "("
        } - TYPES

    def floats(self):
        """Returns the names of float variables, arrays and pointers."""
        names = set()
        for i in self.find("float"):
            at = i + 1
            while self[at] in {"*", "const", "__restrict__", "&"}:
                at += 1
            if self.kind(at) == "name" and self[at + 1] != "(":
                names.add(self[at])
        return names
