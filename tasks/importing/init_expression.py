"""Prints recorded calls as the expression of an `init`."""

import torch
from call_recording import Call
from expression_printer import INFIX, ExpressionPrinter
from recorded_draws import constant_of, init_of_draw, leaves_of
from task_initializer import Init
from torchscript_text import Unprintable, number

# In-place operators besides INFIX's that are printed as the functional operators.
IN_PLACE = {"clamp", "erfinv", "abs", "tril", "triu", "exp"}

# The types of draws, in which expressions are computed.
OWN_TYPES = {"uniform": torch.float32, "normal": torch.float32, "integers": torch.int64}


class Size(str):
    """The text of an extent of the drawn tensor in an expression, such as "x.size(0)"."""


def init_from_expression(call):
    """Returns an Init with the recorded calls as its expression, or None.

    The calls must depend on one draw of the result's own shape, or on none, and must print in at
    most 300 characters. Extents above 2 of the result are printed as sizes of x.
    """
    leaves = leaves_of(call, [])
    if None in leaves or len({id(leaf) for leaf in leaves}) > 1:
        return None
    drawn = leaves[0] if leaves else None
    if drawn is None and leaves_of(call, [], with_scalars=True):
        return None  # of scalar draws alone
    if drawn is not None and drawn.shape != call.shape:
        return None
    base = Init("constant", 0.0) if drawn is None else init_of_draw(drawn)
    if base is None:
        return None
    source = f"({base.expr})" if base.expr else "x"
    if drawn is not None and drawn.dtype not in (OWN_TYPES.get(base.of, drawn.dtype), torch.bool):
        source = f"{source}.to({drawn.dtype})"
    try:
        text = RecordedExpression(drawn, source, call.shape).text_of(call)
    except (Unprintable, AttributeError):
        return None
    if len(text) > 300:
        return None
    return Init(base.of, base.a, base.b, "" if text == "x" else text)


def init_from_parts(call):
    """Returns an Init of a stack of tensors, or of columns, that are each drawn once, or None.

    Each part is computed from a part of one draw of the result's shape.
    """
    if call.name not in ("stack", "cat"):
        return None
    parts = call.args[0]
    if any(part is None for part in parts):
        return None
    is_stack = call.name == "stack"
    dim = (call.args[1] if len(call.args) > 1 else call.kwargs.get("dim", 0)) % len(call.shape)
    if not is_stack and any(part.shape[dim] != 1 for part in parts):
        return None
    drawn = [draw_of_part(part) for part in parts]
    draws = [id(leaf) for leaf in drawn if isinstance(leaf, Call)]
    if len(set(draws)) < len(draws):
        return None  # parts of the same draw depend on each other
    bases = [None if leaf is None else init_of_draw(leaf) for leaf in drawn if leaf != 0]
    kinds = {None if base is None or base.expr else base.of for base in bases}
    if not kinds or not kinds <= {"normal", "uniform", "integers"}:
        return None
    base = Init("normal" if "normal" in kinds else "uniform")
    texts = []
    for i, (part, leaf) in enumerate(zip(parts, drawn)):
        place = f"x.select({dim}, {i})" if is_stack else f"x.narrow({dim}, {i}, 1)"
        leaf = None if leaf == 0 else leaf
        if leaf is not None and base.of == "normal" and init_of_draw(leaf).of != "normal":
            # The normal distribution's own values are uniform; 1 itself is left out.
            place = f"(0.5 + 0.5 * torch.erf({place} * 0.70710678)).clamp(max=0.9999999)"
        source = "" if leaf is None else scaled_source(place, init_of_draw(leaf), leaf.dtype)
        try:
            expression = RecordedExpression(leaf, source, part.shape)
            if is_stack:
                expression.extents = {
                    extent: f"x.size({j if j < dim else j + 1})"
                    for j, extent in reversed(list(enumerate(part.shape)))
                    if extent > 2
                }
            texts.append(expression.text_of(part))
        except (Unprintable, AttributeError):
            return None
    text = f"torch.{call.name}([{', '.join(texts)}], {dim})"
    return Init(base.of, expr=text) if len(text) <= 300 else None


def draw_of_part(part):
    """Returns the one draw of a part's own shape that it depends on, 0 if it depends on none, or
    None."""
    leaves = leaves_of(part, [])
    if not leaves:
        return None if leaves_of(part, [], with_scalars=True) else 0
    if None in leaves or len({id(leaf) for leaf in leaves}) > 1 or leaves[0].shape != part.shape:
        return None
    return leaves[0]


def scaled_source(place, init, dtype):
    """Returns the text of a draw that is made from a uniform or standard normal one at `place`."""
    factor = float(init.b if init.of == "normal" else init.b - init.a)
    text = place if factor == 1 else f"{place} * {number(factor)}"
    if init.of == "integers":
        text = f"torch.floor({text})"
    if init.a != 0:
        text = f"{text} + {number(float(init.a))}"
    if dtype != torch.float32:
        return f"({text}).to({dtype})"
    return text if text == place or text.endswith(")") else f"({text})"


class RecordedExpression:
    """Prints recorded calls as an expression over one draw.

    drawn: the Call that draws, or None. source: the expression that is printed in its place.
    shape: that of the whole expression, whose extents above 2 are printed as sizes of x. varies: a
    function that returns True for a Call whose values are not printed as a constant, even if all
    are equal.
    """

    def __init__(self, drawn, source, shape, varies=lambda call: False):
        self.drawn, self.source, self.varies = drawn, source, varies
        self.extents = {
            extent: f"x.size({i})" for i, extent in reversed(list(enumerate(shape))) if extent > 2
        }
        self.printer = ExpressionPrinter(self.show, lambda call: len(call.shape))

    def show(self, value):
        """Returns a Call or a Size as printed, or None for any other value; see `literal`."""
        if isinstance(value, Size):
            return str(value)
        if isinstance(value, Call):
            return self.source if value is self.drawn else self.text_of(value)
        return None

    def text_of(self, call):
        """Returns a call, or its result that is used, as an expression.

        Raises Unprintable, or AttributeError if an in-place operator has no functional overload.
        """
        text = self.text_of_results(call)
        return text if call.position is None else f"{text}[{call.position}]"

    def text_of_results(self, call):
        """Returns a call as an expression; see text_of."""
        if call.name in ("copy_",):
            return self.show(call.args[1])
        level = None if self.varies(call) else constant_of(call, means=True)
        if level is not None:
            shape = ", ".join(self.extents.get(n, str(n)) for n in call.shape)
            return f"torch.full([{shape}], {number(level)}, dtype={call.dtype})"
        args = call.args
        if call.name in ("arange", "expand", "view", "_unsafe_view", "reshape", "linspace", "eye"):
            args = torch.utils._pytree.tree_map_only(int, self.as_size, args)
        functional = call.name.removesuffix("_")
        if call.name.endswith("_") and (functional in INFIX or functional in IN_PLACE):
            packet = getattr(torch.ops.aten, functional)
            overload = getattr(packet, call.target._overloadname)
            return self.printer.print_call(overload, args, call.kwargs)
        if call.target._schema.is_mutable:
            raise Unprintable(call.name)
        kwargs = dict(call.kwargs)
        if call.name in ("arange",) and kwargs.get("dtype") is None:
            kwargs["dtype"] = call.dtype
        return self.printer.print_call(call.target, args, kwargs)

    def as_size(self, value):
        """Returns the Size of x that equals a number, or the number itself if there is none."""
        return (
            Size(self.extents[value])
            if value in self.extents and not isinstance(value, bool)
            else value
        )
