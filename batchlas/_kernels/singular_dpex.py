"""The families of the SVD by numba-dpex: one matrix per thread, on dpnp arrays.

Decided here: what is compiled when. Kernels are compiled once and kept for the life of
the process, as by `singular`; it takes seconds to minutes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from batchlas._kernels import gesvd_orders, gesvd_shapes
from batchlas._kernels.kinds import DType
from batchlas._kernels.singular import has_own_kernel, shape_of
from batchlas._kernels.work_items import launch_items, render_items

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.render import Rendered


def gesvd(method: str, arrays: Sequence[Any], vec: str) -> None:
    """Decompose a stack of USM memory on its queue, and wait for it.

    Parameters
    ----------
    method : {"jacobi", "bidiagonal"}
    arrays : sequence of dpnp.ndarray
        The stack, shape (batch, m, n); its singular values, (batch, min(m, n)); if
        vectors are wanted, u and vh; its info, (batch,). All C-contiguous and on one
        queue.
    vec : {"none", "thin", "all"}
    """
    from batchlas._backends.dpnp import empty

    batch, m, n = arrays[0].shape
    dtype, vectors = arrays[0].dtype.name, vec != "none"
    if method == "jacobi" and has_own_kernel(m, n, dtype):
        launch_items(_order(n, dtype, vectors=vectors), arrays)
        return
    sizes = shape_of(batch, (m, n), dtype, vec, width=1).scalars
    scratch = empty((batch * sizes[-1],), arrays[1].dtype, arrays[1])
    rendered = _shapes(method, dtype, vectors=vectors, wide=m < n)
    launch_items(rendered, arrays, (*sizes, scratch))


@lru_cache(maxsize=64)
def _order(n: int, dtype: str, *, vectors: bool) -> Rendered:
    return render_items(gesvd_orders.gesvd(n, DType(dtype), 1, 1, vectors=vectors))


@lru_cache(maxsize=64)
def _shapes(method: str, dtype: str, *, vectors: bool, wide: bool) -> Rendered:
    kernel = gesvd_shapes.gesvd(method, DType(dtype), 1, vectors=vectors, wide=wide)
    return render_items(kernel)
