"""The families ``jacobi`` and ``bidiagonal`` of the SVD, on CPU devices of SYCL.

One matrix per vector lane. Kernels are compiled once and kept for the life of the
process: one of each method for all shapes, and one for each of the smallest orders,
since those are written out.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._backends.numpy import empty
from batchlas._kernels.limits import pitch
from batchlas._kernels.vectors import compile_vectors, launch_vectors
from batchlas._runtime.dtypes import NAME_OF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from batchlas._kernels.vectors import Launch

# A batch is cut into launches that take no more scratch memory than this, but for what
# keeps many cores busy.
_SCRATCH_BYTES = 2**26
_LEAST_VECTORS = 64


def jacobi(queue: Any, arrays: Sequence[NDArray[Any]], vec: str, width: int) -> bool:
    """Decompose a stack in the host's memory on a CPU queue, and wait for it.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        Of a CPU device that shares the process's memory.
    arrays : sequence of ndarray
        The stack, shape (batch, m, n); its singular values, (batch, min(m, n)); if
        vectors are wanted, u and vh; its info, (batch,). All C-contiguous.
    vec : {"none", "thin", "all"}
    width : int
        Matrices per vector.

    Returns
    -------
    bool
        Whether a matrix failed.
    """
    m, n = arrays[0].shape[1:]
    dtype = NAME_OF[arrays[0].dtype.char]
    if not has_own_kernel(m, n, dtype):
        return _launch_shapes("jacobi", queue, arrays, vec, width)
    kernel = _order(queue, n, dtype, width, vectors=vec != "none")
    return launch_vectors(kernel, arrays, width)


def bidiagonal(
    queue: Any, arrays: Sequence[NDArray[Any]], vec: str, width: int
) -> bool:
    """Decompose a stack; parameters as of `jacobi`."""
    return _launch_shapes("bidiagonal", queue, arrays, vec, width)


def has_own_kernel(m: int, n: int, dtype: str) -> bool:
    """Whether rotations of matrices of this shape are written out.

    A complex kernel of order 4 took two seconds to compile.
    """
    return m == n <= (4 if np.dtype(dtype).kind == "f" else 3)


def _launch_shapes(
    method: str, queue: Any, arrays: Sequence[NDArray[Any]], vec: str, width: int
) -> bool:
    """Launch a kernel of all shapes, a large batch in parts."""
    batch, rows, columns = arrays[0].shape
    dtype, real = NAME_OF[arrays[0].dtype.char], arrays[1].dtype
    kernel = _shapes(
        method, queue, dtype, width, vectors=vec != "none", wide=rows < columns
    )
    sizes = shape_scalars(rows, columns, dtype, vec)
    most = max(_SCRATCH_BYTES // (sizes[-1] * width * real.itemsize), _LEAST_VECTORS)
    at_once = width * min(most, -(-batch // width))
    scratch = empty((at_once * sizes[-1],), real, arrays[1])
    scalars, failed = (*sizes, scratch.ctypes.data), False
    for start in range(0, batch, at_once):
        part = [array[start : start + at_once] for array in arrays]
        failed |= launch_vectors(kernel, part, width, scalars)
    return failed


def shape_scalars(
    rows: int, columns: int, dtype: str, vec: str
) -> tuple[int, int, int, int]:
    """Return m, n, columns and reals, the scalars of the kernels of all shapes.

    The last one is how many reals of scratch memory a matrix takes.
    """
    m, n = max(rows, columns), min(rows, columns)
    kept = {"none": 0, "thin": n, "all": m}[vec]
    parts = 2 if np.dtype(dtype).kind == "c" else 1
    matrices = m * pitch(n)
    if vec != "none":
        matrices += kept * pitch(m) + n * pitch(n)
    return m, n, kept, parts * (matrices + 4 * n + m) + 6 * n


@lru_cache(maxsize=64)
def _order(queue: Any, n: int, dtype: str, width: int, *, vectors: bool) -> Launch:
    from batchlas._kernels.gesvd_orders import gesvd
    from batchlas._kernels.kinds import DType

    kind = DType(dtype)
    run = width // 2 if kind.is_complex else width
    return compile_vectors(queue, gesvd(n, kind, run, width, vectors=vectors), width)


@lru_cache(maxsize=64)
def _shapes(
    method: str, queue: Any, dtype: str, width: int, *, vectors: bool, wide: bool
) -> Launch:
    from batchlas._kernels.gesvd_shapes import gesvd
    from batchlas._kernels.kinds import DType

    kernel = gesvd(method, DType(dtype), width, vectors=vectors, wide=wide)
    return compile_vectors(queue, kernel, width)
