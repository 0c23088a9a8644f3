"""The family ``lane``: one matrix per vector lane, on CPU devices of SYCL.

Kernels are compiled once per order, dtype, triangle and width, and kept for the life of
the process.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels.limits import require_private_memory
from batchlas._kernels.vectors import compile_vectors, launch_vectors, vector_scratch
from batchlas._runtime.dtypes import NAME_OF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from batchlas._kernels.vectors import Launch
    from batchlas._runtime.lease import Layout


def potrf_scratch(batch: int, n: int, dtype: str, width: int) -> Layout | None:
    """Return what `potrf` needs."""
    matrix = (n, n), dtype
    return vector_scratch(batch, width, (matrix, matrix, ((), "int32")))


def potrf(
    queue: Any,
    arrays: Sequence[NDArray[Any]],
    uplo: str,
    width: int,
    ahead: int,
    scratch: Sequence[NDArray[Any]],
) -> bool:
    """Factor a stack in the host's memory on a CPU queue, and wait for it.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        Of a CPU device that shares the process's memory.
    arrays : sequence of ndarray
        The stack, shape (batch, n, n); its factor; its info, shape (batch,). All
        C-contiguous; the factor begins at a cache line.
    uplo : {"L", "U"}
    width : int
        Matrices per vector.
    ahead : int
        Vectors ahead that are prefetched.
    scratch : sequence of ndarray
        What `potrf_scratch` asks for.

    Returns
    -------
    bool
        Whether a matrix failed.

    Raises
    ------
    ValueError
        For matrices that are too large for this family.
    """
    stack = arrays[0]
    dtype = NAME_OF[stack.dtype.char]
    require_private_memory(stack.shape[-1], dtype, width)
    kernel = _potrf_kernel(queue, stack.shape[-1], dtype, uplo, width, ahead)
    failed = launch_vectors(kernel, arrays, width, scratch=scratch)
    if failed:
        count_minors(arrays[1], arrays[2])
    return failed


def count_minors(factor: NDArray[Any], info: NDArray[np.int32]) -> None:
    """Replace the kernel's mark by the order of the first minor that failed."""
    failed = np.flatnonzero(info)
    roots = np.diagonal(factor, axis1=-2, axis2=-1)[failed].real
    bad = ~((roots > 0) & (roots < np.inf))
    info[failed] = 1 + bad.argmax(axis=-1)


@lru_cache(maxsize=512)
def _potrf_kernel(
    queue: Any, n: int, dtype: str, uplo: str, width: int, ahead: int
) -> Launch:
    """Return the compiled kernel; the batch axis becomes vectors of `width` lanes.

    The compiler is imported by the first call that needs it, since it takes longer to
    import than all else.
    """
    from batchlas._kernels import potrf as potrf_kernel
    from batchlas._kernels.kinds import DType

    kind = DType(dtype)
    run = width // 2 if kind.is_complex else width
    kernel = potrf_kernel.potrf(n, kind, uplo, run, width, ahead * width)
    return compile_vectors(queue, kernel, width)
