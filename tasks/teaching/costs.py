"""Estimates how long programs take on a GPU, without one: enough to order the variants of a task.

The factors below were fitted to measured variants (benchmarks/fit_costs.py). An estimate is no
score: it is never stored in a pool.
"""

import math
from typing import NamedTuple

RESIDENT = 132 * 2048  # threads that an H100 holds at a time


class Launch(NamedTuple):
    """One launch of a kernel in the timed case. computes: statements of the reference.

    team: kernels.Kernel. threads: of the whole grid. read, written: bytes of its tensors.
    functions: calls of functions and divisions for all elements of the largest tensor.
    """

    name: str
    computes: tuple
    division: str
    team: str
    block: int
    threads: int
    read: int
    written: int
    passes: int
    functions: int


# Natural logarithms. By team: the bytes a microsecond that it reads and writes.
FACTORS = {
    "launch": 1.14,  # microseconds of a launch at least
    "in_graph": 0.94,
    "element": 16.66,
    "thread": 15.14,
    "scattered": 13.66,
    "warp": 15.16,
    "block": 15.1,
    "tile": 13.84,
    "part": 16.56,
    "again": -3.72,  # share of a row's bytes that cost time again in every further pass
    "idle": -1.76,  # how much slower, for each time that the grid fits into the GPU once more
    "threads": 12.32,  # threads that start a microsecond
    "functions": 14.4,  # functions a microsecond
    "fast_functions": 15.14,  # the same with fast_math
}


# How far the factors of a lesson lie from the fitted ones: standard deviation of the logarithm.
DEVIATION = 0.5


def drawn_factors(random):
    """Returns factors near the fitted ones. With the same factors for all lessons, an estimate
    would say nothing that a program does not say itself."""
    return {name: random.gauss(fitted, DEVIATION) for name, fitted in FACTORS.items()}


def launch_us(launch, functions_a_us, factors=FACTORS, exp=math.exp):
    """Returns the estimated microseconds of a launch beyond the least. Numbers may be tensors."""
    moved = launch.read * (1 + exp(factors["again"]) * (launch.passes - 1)) + launch.written
    idle = 1 + exp(factors["idle"]) * RESIDENT / launch.threads
    memory_us = moved / exp(factors[launch.team])
    function_us = launch.functions / functions_a_us
    return (memory_us + function_us) * idle + launch.threads / exp(factors["threads"])


def program_us(program, calls_us, settings, factors=FACTORS):
    """Returns the estimated microseconds of a call.

    calls_us: by statement, as ATen runs it. settings: the names of the enabled ones.
    """
    least = math.exp(factors["in_graph" if "cuda_graph" in settings else "launch"])
    rate = math.exp(factors["fast_functions" if "fast_math" in settings else "functions"])
    kernels = sum(least + launch_us(launch, rate, factors) for launch in program.launches)
    return kernels + sum(calls_us[name] for name in program.made_calls)
