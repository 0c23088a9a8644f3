"""What a kernel of one matrix per lane may hold; importing this is cheap."""

from __future__ import annotations

import numpy as np

TILE = 4
"""Rows and columns of the tiles that a factorisation works on."""

# A thread keeps its matrices in private memory, of which the CPU runtime has this much
# for sure: with more, its stacks overflow.
_PRIVATE_BYTES = 2**20


def padded(n: int) -> int:
    """Return the order of whole tiles that holds a matrix."""
    return -(-n // TILE) * TILE


def fits_in_private_memory(n: int, dtype: str, width: int) -> bool:
    """Whether `width` matrices of order `n`, in whole tiles, fit in a thread's own."""
    return padded(n) ** 2 * width * np.dtype(dtype).itemsize <= _PRIVATE_BYTES


def require_private_memory(n: int, dtype: str, width: int) -> None:
    """Raise unless `fits_in_private_memory`: the check at the head of a driver.

    Raises
    ------
    ValueError
        If the kernel would run on a stack that overflows.
    """
    if not fits_in_private_memory(n, dtype, width):
        message = (
            f"{width} matrices of order {n} in {dtype} are more than the "
            f"{_PRIVATE_BYTES} bytes that a thread may keep to itself"
        )
        raise ValueError(message)
