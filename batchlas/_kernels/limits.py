"""What a kernel of one matrix per lane may hold; importing this is cheap."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from batchlas._kernels.ir import Expr

# A number, or an expression of a kernel.
Columns = TypeVar("Columns", int, "Expr")

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


def pitch(columns: Columns) -> Columns:
    """Return how far apart the rows of a matrix of vectors lie, in elements.

    It is odd, since otherwise the elements of a column would meet in few sets of the
    cache. From 16 columns on it also is not near a multiple of 64: a load waits for an
    earlier store whose address ends in the same 12 bits, here one to the row before and
    to nearly the same column. Kernels compute it as well, so there is no choice of two
    in it: the CPU compiler of 2024 made a kernel of numba-dpex crash on one.
    """
    odd = columns // 2 * 2 + 1
    is_long = (columns // 16 + 15) // 16  # 0 below 16, then 1; 2 from 272 on
    return odd + is_long * ((columns + 2) // 8 * 8 + 5 - odd)


def ql_pitch(n: int, capacity: int) -> int:
    """Return the pitch in a kernel with room for the order `capacity`."""
    step = pitch(n)
    return step if n * step <= capacity * (capacity + 1) else n | 1


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
