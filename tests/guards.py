"""Scratch memory that shows what a kernel does wrong with it."""

from __future__ import annotations

from contextlib import contextmanager

import numpy as np

from batchlas._runtime.workspace import Arena

GUARD_BYTES = 4096
GUARD = 0xA5
POISON = 0xFF  # NaN in every floating type, -1 in every integer


def fill(array, value):
    """Set every byte; by a whole array, since dpctl 0.17 can abort on a scalar."""
    values = np.full(array.shape, value, np.uint8)
    if not isinstance(array, np.ndarray):
        import dpnp

        values = dpnp.asarray(values, sycl_queue=array.sycl_queue)
    array[...] = values


@contextmanager
def guarded_workspace():
    """Lend poisoned scratch of the exact size, and check the bytes behind it.

    Yields
    ------
    list of int
        The size of every loan, in order.
    """
    borrow, give_back = Arena.borrow, Arena.give_back
    sizes = []

    def region(arena, loan, start, count):
        return arena.memory.array(loan.block, start, (count,), np.dtype(np.uint8))

    def guarded_borrow(arena, nbytes, what):
        loan = borrow(arena, nbytes + GUARD_BYTES, what)
        loan.nbytes = nbytes + GUARD_BYTES
        sizes.append(nbytes)
        fill(region(arena, loan, loan.start, nbytes), POISON)
        fill(region(arena, loan, loan.start + nbytes, GUARD_BYTES), GUARD)
        return loan

    def checked_give_back(arena, loan):
        nbytes = loan.nbytes - GUARD_BYTES
        guard = region(arena, loan, loan.start + nbytes, GUARD_BYTES)
        touched = not bool((guard == GUARD).all())
        give_back(arena, loan)
        assert not touched, f"{loan.what} wrote beyond its {nbytes} bytes"

    Arena.borrow, Arena.give_back = guarded_borrow, checked_give_back
    try:
        yield sizes
    finally:
        Arena.borrow, Arena.give_back = borrow, give_back
