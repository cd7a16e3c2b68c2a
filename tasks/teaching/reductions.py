"""How reductions keep, update and combine their state, in C."""


class Reduction:
    """fields: name, type and first value of each part of the state; the first is the result."""

    def __init__(self, fields, update, combine):
        self.fields = fields
        self.update = update
        self.combine = combine


FLOAT = "float"


def best(comparison, first):
    return Reduction(
        [("best", FLOAT, first)],
        f"if ({{value}} {comparison} {{best}}) {{best}} = {{value}};",
        f"if ({{other_best}} {comparison} {{best}}) {{best}} = {{other_best}};",
    )


def place_of_best(comparison, first):
    return Reduction(
        [("place", "int", "0"), ("best", FLOAT, first)],
        f"if ({{value}} {comparison} {{best}}) {{{{ {{best}} = {{value}}; {{place}} = {{at}}; }}}}",
        f"if ({{other_best}} {comparison} {{best}} || "
        "({other_best} == {best} && {other_place} < {place})) "
        "{{ {best} = {other_best}; {place} = {other_place}; }}",
    )


REDUCTIONS = {
    "sum": Reduction(
        [("total", FLOAT, "0.0f")], "{total} += {value};", "{total} += {other_total};"
    ),
    "prod": Reduction(
        [("total", FLOAT, "1.0f")], "{total} *= {value};", "{total} *= {other_total};"
    ),
    "max": best(">", "-INFINITY"),
    "min": best("<", "INFINITY"),
    "argmax": place_of_best(">", "-INFINITY"),
    "argmin": place_of_best("<", "INFINITY"),
    # The largest value and the sum of exponentials relative to it, in one pass. The differences are
    # exact, as in below() of reduction_rules.py.
    "exponentials": Reduction(
        [("largest", FLOAT, "-INFINITY"), ("total", FLOAT, "0.0f")],
        "if ({value} > {largest}) {{ {total} = {total} * expf(__fsub_rn({largest}, {value})) "
        "+ 1.0f; {largest} = {value}; }} else if ({value} > -INFINITY) "
        "{total} += expf(__fsub_rn({value}, {largest}));",
        "if ({other_largest} > {largest}) {{ {total} = {total} * expf({largest} - {other_largest})"
        " + {other_total}; {largest} = {other_largest}; }} else if ({other_largest} > -INFINITY) "
        "{total} += {other_total} * expf({other_largest} - {largest});",
    ),
    # Welford's update and Chan's combination: exact even where the mean is large.
    "moments": Reduction(
        [("mean", FLOAT, "0.0f"), ("squares", FLOAT, "0.0f"), ("count", FLOAT, "0.0f")],
        "{{ {count} += 1.0f; const float step = {value} - {mean}; {mean} += step / {count}; "
        "{squares} += step * ({value} - {mean}); }}",
        "if ({other_count} > 0.0f) {{ const float whole = {count} + {other_count}; "
        "const float step = {other_mean} - {mean}; {mean} += step * ({other_count} / whole); "
        "{squares} += {other_squares} + step * step * ({count} * {other_count} / whole); "
        "{count} = whole; }}",
    ),
}
