"""The families ``jacobi`` and ``bidiagonal`` of the SVD, on CPU devices of SYCL.

One matrix per vector lane. Kernels are compiled once and kept for the life of the
process: one of each method for all shapes, and one for each of the smallest orders,
since those are written out.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from batchlas._kernels.limits import pitch
from batchlas._kernels.vectors import compile_vectors, launch_vectors
from batchlas._runtime.dtypes import NAME_OF, REAL_OF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from batchlas._kernels.vectors import Launch
    from batchlas._runtime.lease import Allocate, Layout

# A batch is cut into launches that take no more scratch memory than this, but for what
# keeps many cores busy.
_SCRATCH_BYTES = 2**26
_LEAST_VECTORS = 64


class Shape(NamedTuple):
    """What a kernel of all shapes is told; all but `most` are its scalars.

    m >= n is the shape, of the adjoint for wide matrices; `columns` of the vectors of
    length m are computed; a matrix takes `reals` of scratch memory, for `most` matrices
    at a time.
    """

    m: int
    n: int
    columns: int
    reals: int
    most: int

    @property
    def scalars(self) -> tuple[int, ...]:
        """Return the scalars in the kernel's order."""
        return self[:-1]


def shape_of(
    batch: int, shape: tuple[int, int], dtype: str, vec: str, width: int
) -> Shape:
    """Return what a stack's shape means for a kernel of all shapes."""
    m, n = max(shape), min(shape)
    columns = {"none": 0, "thin": n, "all": m}[vec]
    parts = 2 if np.dtype(dtype).kind == "c" else 1
    matrices = m * pitch(n)
    if vec != "none":
        matrices += columns * pitch(m) + n * pitch(n)
    reals = parts * (matrices + 5 * n + 2 * m) + 10 * n
    vector_bytes = reals * width * np.dtype(dtype).itemsize // parts
    vectors = max(_SCRATCH_BYTES // vector_bytes, _LEAST_VECTORS)
    return Shape(m, n, columns, reals, width * min(vectors, -(-batch // width)))


def gesvd_scratch(
    method: str,
    batch: int,
    shape: tuple[int, int],
    dtype: str,
    vec: str,
    width: int,
) -> Layout | None:
    """Return what `gesvd` needs."""
    if method == "jacobi" and has_own_kernel(*shape, dtype):
        return None
    told = shape_of(batch, shape, dtype, vec, width)
    return partial(_reals, told.most * told.reals, REAL_OF[np.dtype(dtype).char])


def _reals(count: int, dtype: str, allocate: Allocate) -> tuple[Any, ...]:
    return (allocate((count,), dtype),)


def gesvd(
    method: str,
    queue: Any,
    arrays: Sequence[NDArray[Any]],
    vec: str,
    width: int,
    scratch: Sequence[NDArray[Any]],
) -> bool:
    """Decompose a stack in the host's memory on a CPU queue, and wait for it.

    Parameters
    ----------
    method : {"jacobi", "bidiagonal"}
    queue : dpctl.SyclQueue
        Of a CPU device that shares the process's memory.
    arrays : sequence of ndarray
        The stack, shape (batch, m, n); its singular values, (batch, min(m, n)); if
        vectors are wanted, u and vh; its info, (batch,). All C-contiguous.
    vec : {"none", "thin", "all"}
    width : int
        Matrices per vector.
    scratch : sequence of ndarray
        What `gesvd_scratch` asks for.

    Returns
    -------
    bool
        Whether a matrix failed.
    """
    batch, m, n = arrays[0].shape
    dtype, vectors = NAME_OF[arrays[0].dtype.char], vec != "none"
    if not scratch:
        kernel = _order(queue, n, dtype, width, vectors=vectors)
        return launch_vectors(kernel, arrays, width)
    kernel = _shapes(method, queue, dtype, width, vectors=vectors, wide=m < n)
    shape = shape_of(batch, (m, n), dtype, vec, width)
    scalars, failed = (*shape.scalars, scratch[0].ctypes.data), False
    for start in range(0, batch, shape.most):
        part = [array[start : start + shape.most] for array in arrays]
        failed |= launch_vectors(kernel, part, width, scalars)
    return failed


def has_own_kernel(m: int, n: int, dtype: str) -> bool:
    """Whether rotations of matrices of this shape are written out.

    A complex kernel of order 4 took two seconds to compile.
    """
    return m == n <= (4 if np.dtype(dtype).kind == "f" else 3)


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
