"""The families ``jacobi`` and ``ql`` of the eigenproblem, on CPU devices of SYCL.

One matrix per vector lane. Kernels are compiled once and kept for the life of the
process: those of ``jacobi`` per order and triangle, since they are written out; that of
``ql`` for all orders and both triangles together.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from batchlas._kernels.limits import ql_capacity
from batchlas._kernels.vectors import compile_vectors, launch_vectors
from batchlas._runtime.dtypes import NAME_OF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from batchlas._kernels.vectors import Launch


def jacobi(queue: Any, arrays: Sequence[NDArray[Any]], uplo: str, width: int) -> bool:
    """Solve a stack in the host's memory on a CPU queue, and wait for it.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        Of a CPU device that shares the process's memory.
    arrays : sequence of ndarray
        The stack, shape (batch, n, n); its eigenvalues, (batch, n); its eigenvectors,
        or none if only values are wanted; its info, (batch,). All C-contiguous and, but
        for the stack, begun at a cache line.
    uplo : {"L", "U"}
    width : int
        Matrices per vector.

    Returns
    -------
    bool
        Whether a matrix failed.
    """
    stack = arrays[0]
    n, dtype = stack.shape[-1], NAME_OF[stack.dtype.char]
    kernel = _jacobi(queue, n, dtype, uplo, width, vectors=len(arrays) == 4)
    return launch_vectors(kernel, arrays, width)


def ql(queue: Any, arrays: Sequence[NDArray[Any]], uplo: str, width: int) -> bool:
    """Solve a stack; parameters as of `jacobi`."""
    stack = arrays[0]
    n, dtype = stack.shape[-1], NAME_OF[stack.dtype.char]
    kernel = _ql(queue, dtype, width, vectors=len(arrays) == 4)
    return launch_vectors(kernel, arrays, width, ql_scalars(n, uplo))


def ql_scalars(n: int, uplo: str) -> tuple[float, ...]:
    """Return the scalars after the batch: order, steps and the sign of `syev_ql`."""
    steps = (n, 1, 1.0) if uplo == "L" else (1, n, -1.0)
    return (n, n | 1, *steps)


@lru_cache(maxsize=256)
def _jacobi(
    queue: Any, n: int, dtype: str, uplo: str, width: int, *, vectors: bool
) -> Launch:
    from batchlas._kernels.kinds import DType
    from batchlas._kernels.syev_jacobi import syev_jacobi

    kind = DType(dtype)
    run = width // 2 if kind.is_complex else width
    kernel = syev_jacobi(n, kind, uplo, run, width, vectors=vectors)
    return compile_vectors(queue, kernel, width)


@lru_cache(maxsize=64)
def _ql(queue: Any, dtype: str, width: int, *, vectors: bool) -> Launch:
    from batchlas._kernels.kinds import DType
    from batchlas._kernels.syev_ql import syev_ql

    capacity = ql_capacity(dtype, width)
    kernel = syev_ql(DType(dtype), capacity, width, vectors=vectors)
    return compile_vectors(queue, kernel, width)
