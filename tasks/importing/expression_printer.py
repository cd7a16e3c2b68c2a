"""Prints calls of ATen operators as TorchScript expressions."""

import torch
from torchscript_text import Printed, Unprintable, grouped, literal

# Operators that are printed as infix operators, by their ATen names.
INFIX = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitwise_and": "&",
    "__and__": "&",
    "bitwise_or": "|",
    "__or__": "|",
    "bitwise_xor": "^",
    "pow": "**",
}
# Operators on shapes and conversions, which are easier to read as methods. In-place operators are
# printed as methods, too.
METHODS = {
    "view",
    "reshape",
    "transpose",
    "permute",
    "expand",
    "expand_as",
    "unsqueeze",
    "squeeze",
    "contiguous",
    "flatten",
    "t",
    "repeat",
    "masked_fill",
    "clone",
    "type_as",
    "view_as",
    "size",
    "new_zeros",
    "new_ones",
    "new_full",
    "new_empty",
    "unfold",
    "movedim",
    "swapaxes",
    "unbind",
    "split",
    "chunk",
    "split_with_sizes",
}
# Operators that return their first argument in eval mode.
IDENTITIES = {
    "detach",
    "detach_",
    "alias",
    "lift",
    "lift_fresh",
    "dropout",
    "dropout_",
    "feature_dropout",
    "feature_dropout_",
    "alpha_dropout",
    "alpha_dropout_",
    "feature_alpha_dropout",
    "feature_alpha_dropout_",
    "native_dropout",
}
# Operators that are printed as equivalent ones, by their ATen names.
SHORTER = {
    "_softmax": "softmax",
    "_log_softmax": "log_softmax",
    "_unsafe_view": "reshape",
    "_reshape_alias": "reshape",
    "lift_fresh_copy": "clone",
}
# Operators that draw random numbers only with certain arguments, which the judge's rules check.
MAY_DRAW = {"scaled_dot_product_attention", "rrelu", "gru", "lstm", "rnn_tanh", "rnn_relu"}
# The end of a slice that has no end.
NO_SIZE = 2**63 - 1


class ExpressionPrinter:
    """Prints calls of ATen operators as TorchScript expressions.

    show: as in `literal`. rank_of: a function that returns the rank of an argument that represents
    a tensor, or None if it is unknown.
    """

    def __init__(self, show, rank_of):
        self.show, self.rank_of = show, rank_of

    def print_call(self, target, args, kwargs):
        """Returns a call of `target`, a torch._ops.OpOverload, as an expression.

        Raises Unprintable if the operator is none of ATen's or draws random numbers.
        """
        schema = target._schema
        name = schema.name.split("::")[1]
        if not schema.name.startswith("aten::"):
            raise Unprintable(f"it calls the operator {schema.name}, which is no ATen operator")
        if is_identity(name, args, kwargs, schema):
            return literal(args[0], self.show)
        if torch.Tag.nondeterministic_seeded in target.tags and name not in MAY_DRAW:
            raise Unprintable(
                f"it draws random numbers: aten::{name}; forward() may call torch.rand and "
                "torch.randn, whose results become inputs"
            )
        if name == "lift_fresh_copy" and literal(args[0], self.show).startswith(
            ("torch.tensor(", "torch.full([], ")
        ):
            return literal(args[0], self.show)
        name = SHORTER.get(name, name)
        if target is torch.ops.aten.view.default:
            # An operator may lay out its result in another way on a GPU, where a view of it is
            # impossible.
            name = "reshape"
        if name == "view" and target._overloadname == "dtype":
            raise Unprintable(
                "it views the bits of a tensor as another type, which TorchScript cannot express"
            )
        texts = [
            ""
            if isinstance(a, (torch.device, torch.layout))
            else literal(a, self.show, str(s.type))
            for a, s in zip(args, schema.arguments)
        ]
        if name == "_weight_norm":  # the operator does not check the size of g
            v, g, dim = (*texts, "0")[:3]
            return f"{grouped(v)} * ({grouped(g)} / torch.norm_except_dim({v}, 2, {dim}))"
        given = dict(zip([a.name for a in schema.arguments], args)) | kwargs
        mask_type = dtype_of(given.get("attn_mask"))
        if name == "scaled_dot_product_attention" and mask_type and mask_type.is_floating_point:
            # On a CPU, the operator reads a mask as if it had the query's type.
            mask = f"{literal(given['attn_mask'], self.show)}.to({texts[0]}.dtype)"
            given["attn_mask"] = Printed(mask)
        text = None
        if name in ("to", "_to_copy"):
            text = print_conversion(name, texts[0], given)
        elif name in ("select", "slice"):
            if not kwargs:
                text = self.print_index(name, args, texts)
        elif name in ("softmax", "log_softmax") and schema.name.startswith("aten::_"):
            text = f"torch.{name}({texts[0]}, {texts[1]})"
        else:
            text = print_operator(name, texts, kwargs)
        return self.print_by_schema(name, schema, given) if text is None else text

    def print_index(self, name, args, texts):
        """Returns an aten::select or aten::slice as a subscript.

        Returns None if its dimension or the tensor's rank is unknown. texts: `args` as printed.
        """
        rank, dim = self.rank_of(args[0]), args[1] if len(args) > 1 else 0
        if rank is None or not isinstance(dim, int):
            return None
        dim = dim % rank
        if name == "select":
            return print_subscript(grouped(texts[0]), dim, texts[2])
        start = "" if len(args) < 3 or args[2] in (None, 0) else texts[2]
        end = (
            ""
            if len(args) < 4 or (isinstance(args[3], int) and args[3] == NO_SIZE) or args[3] is None
            else texts[3]
        )
        step = f":{texts[4]}" if len(args) > 4 and args[4] != 1 else ""
        if not start and not end and not step:
            return texts[0]
        return print_subscript(grouped(texts[0]), dim, f"{start}:{end}{step}")

    def print_by_schema(self, name, schema, given):
        """Returns a call with its schema's arguments; `given` has their values by name.

        Trailing arguments that have their defaults are left out, and those that name a device.
        """
        shown = []
        for argument in schema.arguments:
            if (
                argument.name in ("device", "pin_memory", "layout", "generator")
                or argument.name not in given
            ):
                continue
            value = given[argument.name]
            if argument.name in ("cudnn_enabled", "cudnn_enable"):
                value = True  # the reference must not depend on whether the importer has cuDNN
            text = literal(value, self.show, str(argument.type))
            keep = not argument.has_default_value() or not same_default(
                value, argument.default_value
            )
            shown.append((argument, text, keep))
        while shown and not shown[-1][2]:
            shown.pop()
        positional = True
        parts = []
        expected = iter(schema.arguments)
        for argument, text, keep in shown:
            positional = (
                positional and not argument.kwarg_only and next(expected).name == argument.name
            )
            if positional:
                parts.append(text)
            elif keep:
                parts.append(f"{argument.name}={text}")
        is_in_place = name.endswith("_") and not name.endswith("__")
        is_method = name in METHODS or (is_in_place and hasattr(torch.Tensor, name))
        if is_method and schema.arguments and str(schema.arguments[0].type) == "Tensor":
            return f"{grouped(parts[0])}.{name}({', '.join(parts[1:])})"
        return f"torch.{name}({', '.join(parts)})"


def dtype_of(value):
    """Returns the type of an argument that is a tensor of a graph, or None."""
    return getattr(getattr(value, "meta", {}).get("val"), "dtype", None)


def is_identity(name, args, kwargs, schema):
    """Returns True if a call returns its first argument. Raises Unprintable for active dropout."""
    if name not in IDENTITIES:
        return False
    if "dropout" not in name:
        return True
    given = dict(zip([a.name for a in schema.arguments], args)) | kwargs
    if given.get("train", given.get("training", True)):
        raise Unprintable("it draws random numbers: dropout stays on in eval mode")
    return True


def print_conversion(name, self_text, given):
    """Returns an aten::to or aten::_to_copy; `given` has its arguments' values by name."""
    keeps_type = given.get("dtype") and given["dtype"] == dtype_of(given.get("self"))
    if keeps_type and not given.get("copy") and given.get("memory_format") is None:
        return self_text  # another device is none here
    if given.get("dtype") is None:
        return (
            f"{grouped(self_text)}.clone()"
            if name == "_to_copy" or given.get("copy")
            else self_text
        )
    return f"{grouped(self_text)}.to({given['dtype']})"


def print_operator(name, texts, kwargs):
    """Returns a call as an infix or prefix operator or as a size, or None for any other call.

    texts: the positional arguments as printed.
    """
    if name == "sym_size":
        return f"{grouped(texts[0])}.size({texts[1]})"
    if name == "sym_numel":
        return f"{grouped(texts[0])}.numel()"
    if name in INFIX and len(texts) == 2 and not kwargs:
        return f"{grouped(texts[0])} {INFIX[name]} {grouped(texts[1])}"
    if name == "neg":
        return f"-{grouped(texts[0])}"
    if name == "rsub" and len(texts) == 2 and not kwargs:
        return f"{grouped(texts[1])} - {grouped(texts[0])}"
    return None


def print_subscript(self_text, dim, inside):
    """Returns a tensor indexed with `inside` in its dimension `dim`."""
    return f"{self_text}[{':, ' * dim}{inside}]"


def same_default(value, default):
    """Returns True if an argument has its default value, of the same type."""
    return (
        type(value) in (int, float, bool, str, type(None))
        and value == default
        and isinstance(value, bool) == isinstance(default, bool)
    )
