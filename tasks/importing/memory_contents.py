"""Decides the contents of memory that a module reads and has not written."""

import contextlib
import warnings

import torch


@contextlib.contextmanager
def filled_memory():
    """Fills tensors that are made without values: with NaN, or the largest number of their type."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.use_deterministic_algorithms(before)


def leave_numbers_in_memory(tensors):
    """Has the allocator hand out memory that holds ones for tensors of the given sizes."""
    copies = [torch.ones_like(t) for t in tensors for _ in range(16)]
    del copies
