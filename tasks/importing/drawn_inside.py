"""Turns the random numbers that a module draws in forward() into inputs.

A task's reference draws nothing: the judge draws all inputs, and a reference must give the same
result twice.
"""

import ast
import inspect

import torch
from torch.overrides import TorchFunctionMode

# The functions whose results become inputs, and the functions that draw these inputs.
DRAWS = {
    torch.randn: torch.randn,
    torch.rand: torch.rand,
    torch.randn_like: torch.randn,
    torch.rand_like: torch.rand,
}
NAMES = {function.__name__ for function in DRAWS}


class Draws(TorchFunctionMode):
    """Notes the draws of a call, or gives it tensors instead of its draws.

    given: the tensors in the order of the draws; None: the draws happen. noted: for each draw the
    function that repeats it, the shape and the type.
    """

    def __init__(self, given=None):
        super().__init__()
        self.given = None if given is None else list(given)
        self.noted = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func not in DRAWS:
            return func(*args, **(kwargs or {}))
        if self.given is not None:
            return self.given.pop(0)
        result = func(*args, **(kwargs or {}))
        self.noted.append((DRAWS[func], tuple(result.shape), result.dtype))
        return result


def may_draw_inside(text):
    """Returns True if a method other than __init__ names a function that draws."""
    for part in ast.walk(ast.parse(text)):
        if not isinstance(part, ast.ClassDef):
            continue
        for method in part.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                names = {n.attr for n in ast.walk(method) if isinstance(n, ast.Attribute)}
                if names & NAMES:
                    return True
    return False


def draws_of(model, inputs):
    """Returns what forward() draws with these inputs, as Draws.noted."""
    with Draws() as draws, torch.no_grad():
        model(*inputs)
    return draws.noted


def take_draws(model, inputs, draws):
    """Makes forward() take its draws as further arguments; `inputs`: the number of the others."""
    forward = type(model).forward
    names = [p for p in inspect.signature(forward).parameters][1 : inputs + 1]
    names += [f"x{i}" for i in range(len(names), inputs)]
    names += [f"drawn_{i}" for i in range(1, draws + 1)]

    def with_draws(*arguments):
        with Draws(arguments[inputs:]):
            return forward(model, *arguments[:inputs])

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    with_draws.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])
    model.forward = with_draws
