"""The families ``jacobi`` and ``ql`` of the eigenproblem, on CPU devices of SYCL.

One matrix per vector lane. Kernels are compiled once and kept for the life of the
process: those of ``jacobi`` per order and triangle, since they are written out; that of
``ql`` for all orders and both triangles together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from batchlas._kernels.limits import (
    JACOBI_LARGEST,
    ql_capacity,
    ql_pitch,
    require_order,
)
from batchlas._kernels.vectors import compile_vectors, launch_vectors, vector_scratch
from batchlas._runtime.dtypes import NAME_OF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from batchlas._kernels.vectors import Launch
    from batchlas._runtime.lease import Layout


class Triangle(NamedTuple):
    """What is read of the memory of a matrix: which triangle, and if it is conjugated.

    The lower triangle is what a kernel wants. The upper one holds its conjugate, unless
    the matrix is stored by columns.
    """

    uplo: str
    conjugated: bool


def triangle(uplo: str, *, by_columns: bool) -> Triangle:
    """Return what to read for triangle `uplo` of matrices stored by rows or columns."""
    other = {"L": "U", "U": "L"}[uplo]
    return Triangle(other if by_columns else uplo, uplo == "U")


def syev_scratch(
    batch: int, n: int, dtype: str, width: int, *, vectors: bool
) -> Layout | None:
    """Return what `jacobi` and `ql` need."""
    real = np.dtype(dtype).type(0).real.dtype.name
    v = [((n, n), dtype)] if vectors else []
    parts = (((n, n), dtype), ((n,), real), *v, ((), "int32"))
    return vector_scratch(batch, width, parts)


def jacobi(
    queue: Any,
    arrays: Sequence[NDArray[Any]],
    side: Triangle,
    width: int,
    scratch: Sequence[NDArray[Any]],
) -> bool:
    """Solve a stack in the host's memory on a CPU queue, and wait for it.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        Of a CPU device that shares the process's memory.
    arrays : sequence of ndarray
        The stack, shape (batch, n, n); its eigenvalues, (batch, n); its eigenvectors,
        or none if only values are wanted; its info, (batch,). All C-contiguous and, but
        for the stack, begun at a cache line.
    side : Triangle
        What is read of the stack.
    width : int
        Matrices per vector.
    scratch : sequence of ndarray
        What `syev_scratch` asks for.

    Returns
    -------
    bool
        Whether a matrix failed.
    """
    stack = arrays[0]
    n, dtype = stack.shape[-1], NAME_OF[stack.dtype.char]
    require_order(n, JACOBI_LARGEST)
    kernel = _jacobi(queue, n, dtype, side, width, vectors=len(arrays) == 4)
    return launch_vectors(kernel, arrays, width, scratch=scratch)


def ql(
    queue: Any,
    arrays: Sequence[NDArray[Any]],
    side: Triangle,
    width: int,
    scratch: Sequence[NDArray[Any]],
) -> bool:
    """Solve a stack; parameters as of `jacobi`."""
    stack = arrays[0]
    n, dtype = stack.shape[-1], NAME_OF[stack.dtype.char]
    capacity = ql_capacity(dtype, width)
    require_order(n, capacity)
    kernel = _ql(queue, dtype, width, vectors=len(arrays) == 4)
    scalars = ql_scalars(n, side, capacity)
    return launch_vectors(kernel, arrays, width, scalars, scratch)


def ql_scalars(n: int, side: Triangle, capacity: int) -> tuple[float, ...]:
    """Return the scalars after the batch: order, steps and the sign of `syev_ql`."""
    steps = (n, 1) if side.uplo == "L" else (1, n)
    return (n, ql_pitch(n, capacity), *steps, -1.0 if side.conjugated else 1.0)


@lru_cache(maxsize=256)
def _jacobi(
    queue: Any, n: int, dtype: str, side: Triangle, width: int, *, vectors: bool
) -> Launch:
    from batchlas._kernels.kinds import DType
    from batchlas._kernels.syev_jacobi import syev_jacobi

    kind = DType(dtype)
    run = width // 2 if kind.is_complex else width
    kernel = syev_jacobi(n, kind, *side, run, width, vectors=vectors)
    return compile_vectors(queue, kernel, width)


@lru_cache(maxsize=64)
def _ql(queue: Any, dtype: str, width: int, *, vectors: bool) -> Launch:
    from batchlas._kernels.kinds import DType
    from batchlas._kernels.syev_ql import syev_ql

    capacity = ql_capacity(dtype, width)
    kernel = syev_ql(DType(dtype), capacity, width, vectors=vectors)
    return compile_vectors(queue, kernel, width)
