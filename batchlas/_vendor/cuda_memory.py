"""How much of a batch one vendor call gets: by memory and by the routine's limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy

if TYPE_CHECKING:
    from collections.abc import Iterator

# Taken without asking how much is free: the question costs a driver call.
_UNASKED_BYTES = 256 << 20


def fits(scratch_bytes: int) -> bool:
    """Whether a call may take this much scratch: at most a quarter of what is free."""
    return scratch_bytes <= _UNASKED_BYTES or scratch_bytes <= _free_bytes() // 4


def most_matrices(batch: int, matrix_bytes: int, limit: int) -> int:
    """Return how many matrices one call gets, at least one.

    Parameters
    ----------
    batch : int
        Matrices in all.
    matrix_bytes : int
        Scratch per matrix.
    limit : int
        Most matrices that the routine is trusted with.
    """
    most = min(batch, limit)
    if not fits(most * matrix_bytes):
        budget = max(_UNASKED_BYTES, _free_bytes() // 4)
        most = min(most, max(1, budget // matrix_bytes))
    return most


def pieces(batch: int, most: int) -> Iterator[slice]:
    """Cut a batch into as few pieces of at most `most` as possible, even in size."""
    count = -(-batch // most)
    size = -(-batch // count)
    for start in range(0, batch, size):
        yield slice(start, min(start + size, batch))


def _free_bytes() -> int:
    """Return what the driver has left and what CuPy's pool holds unused."""
    free, _total = cupy.cuda.runtime.memGetInfo()
    return int(free + cupy.get_default_memory_pool().free_bytes())
