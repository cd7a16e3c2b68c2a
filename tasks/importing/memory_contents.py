"""Decides the contents of memory that a module reads and has not written."""

import contextlib
import warnings

import torch

COPIES = 16  # of each tensor, since a module may allocate several of its size
LARGEST_KEPT = 32 << 20  # bytes; glibc maps larger blocks, and unmaps them when they are freed


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
    """Has the allocator hand out memory that holds ones for tensors of the given sizes.

    The allocator does not keep the memory of large tensors, which the system returns as zeros.
    """
    copies = [
        torch.ones_like(t) for t in tensors if t.nbytes <= LARGEST_KEPT for _ in range(COPIES)
    ]
    del copies
