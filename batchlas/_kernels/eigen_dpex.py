"""The families ``jacobi`` and ``ql`` by numba-dpex: one matrix per work-item.

The kernels are those of `eigen`, without vectors. Kernels are rendered once and kept
for the life of the process.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels.eigen import ql_scalars
from batchlas._kernels.kinds import DType
from batchlas._kernels.limits import QL_LARGEST
from batchlas._kernels.syev_jacobi import syev_jacobi
from batchlas._kernels.syev_ql import syev_ql
from batchlas._kernels.work_items import launch_items, render_items

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.eigen import Triangle
    from batchlas._kernels.render import Rendered
    from batchlas._runtime.devices import Device


def fits(dtype: str, device: Device) -> bool:
    """Whether the kernels run on a device: a CPU, for they need much private memory."""
    wide = DType(dtype).real is DType.FLOAT64
    return device.family == "cpu" and (device.has_fp64 or not wide)


def jacobi(arrays: Sequence[Any], side: Triangle) -> None:
    """Solve a stack of USM memory on its queue, and wait for it.

    Parameters
    ----------
    arrays : sequence of dpnp.ndarray
        The stack, shape (batch, n, n); its eigenvalues, (batch, n); its eigenvectors,
        or none if only values are wanted; its info, (batch,). All C-contiguous and on
        one queue.
    side : Triangle
        What is read of the stack.
    """
    n, dtype = arrays[0].shape[-1], arrays[0].dtype.name
    launch_items(_jacobi(n, dtype, side, vectors=len(arrays) == 4), arrays)


def ql(arrays: Sequence[Any], side: Triangle) -> None:
    """Solve a stack; parameters as of `jacobi`."""
    n, dtype = arrays[0].shape[-1], arrays[0].dtype.name
    *integers, turn = ql_scalars(n, side, QL_LARGEST)
    scalars = (*integers, np.dtype(DType(dtype).real.value).type(turn))
    launch_items(_ql(dtype, vectors=len(arrays) == 4), arrays, scalars)


@lru_cache(maxsize=256)
def _jacobi(n: int, dtype: str, side: Triangle, *, vectors: bool) -> Rendered:
    return render_items(syev_jacobi(n, DType(dtype), *side, 1, 1, vectors=vectors))


@lru_cache(maxsize=8)
def _ql(dtype: str, *, vectors: bool) -> Rendered:
    return render_items(syev_ql(DType(dtype), QL_LARGEST, 1, vectors=vectors))
