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


JACOBI_LARGEST = 4
"""Largest order of the Jacobi kernels: all their elements are registers."""

QL_LARGEST = 128
"""Largest order of the tridiagonal kernels."""

# Their matrices lie in private memory, at most one of the largest order at 512 bits.
_QL_BYTES = QL_LARGEST * (QL_LARGEST + 1) * 64


def ql_capacity(dtype: str, width: int) -> int:
    """Return the largest order of the tridiagonal kernels at `width` matrices each."""
    cells = _QL_BYTES // (width * np.dtype(dtype).itemsize)
    return min(QL_LARGEST, int((cells - 1) ** 0.5))


def pitch(columns: int) -> int:
    """Return how far apart the rows of a matrix in scratch memory lie: an odd number.

    Otherwise the elements of a column would meet in few sets of the cache.
    """
    return columns | 1


def require_order(n: int, largest: int) -> None:
    """Raise if a matrix is larger than a kernel's largest: the check of a driver.

    Raises
    ------
    ValueError
        If it is.
    """
    if n > largest:
        message = f"order {n}; this kernel solves orders up to {largest}"
        raise ValueError(message)


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
