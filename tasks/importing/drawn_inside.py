"""Turns the random numbers that a module draws in forward() into inputs.

A task's reference draws nothing: the judge draws all inputs, and a reference must give the same
result twice.
"""

import ast
import contextlib
import inspect
import sys
from unittest import mock

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
# Functions that are not called in forward().
FACTORIES = {"__init__", "get_inputs", "get_init_inputs"}


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
    """Returns True if a function that forward() may call names a function that draws."""
    for part in ast.walk(ast.parse(text)):
        if not isinstance(part, ast.FunctionDef) or part.name in FACTORIES:
            continue
        names = {n.attr for n in ast.walk(part) if isinstance(n, ast.Attribute)}
        names |= {n.id for n in ast.walk(part) if isinstance(n, ast.Name)}
        if names & NAMES:
            return True
    return False


def draws_of(model, inputs, path):
    """Returns what forward() draws with these inputs, as Draws.noted, and the lines of the file
    `path` in which it sets the state of a generator."""
    with Draws() as draws, torch.no_grad(), noted_seeds(path) as lines:
        model(*inputs)
    return draws.noted, lines


@contextlib.contextmanager
def noted_seeds(path):
    """Gives the list of the lines of a file that set or make a generator in its context."""
    lines = []

    def noting(function):
        def noted(*args, **kwargs):
            frame = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename != path:
                frame = frame.f_back
            lines.append(frame.f_lineno if frame is not None else 0)
            return function(*args, **kwargs)

        return noted

    with contextlib.ExitStack() as stack:
        for owner in (torch, torch.random, torch.cuda, torch.Generator):
            for name in ("manual_seed", "manual_seed_all", "seed", "set_rng_state", "set_state"):
                if hasattr(owner, name):
                    function = noting(getattr(owner, name))
                    stack.enter_context(mock.patch.object(owner, name, function))
        stack.enter_context(
            mock.patch.object(torch.Generator, "__new__", noting(torch.Generator.__new__))
        )
        yield lines


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
