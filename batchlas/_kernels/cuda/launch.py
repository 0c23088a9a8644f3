"""Compiling and launching the CUDA kernels on CuPy arrays.

Decided here: how a plan becomes a kernel (NVRTC, kept by CuPy on disk and here per
device) and how a batch becomes a grid. Everything is enqueued on CuPy's current
stream; nothing waits.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, TypeVar

import cupy

from batchlas._kernels.cuda import plans
from batchlas._runtime.dtypes import NAME_OF

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.cuda.plans import Plan

Made = TypeVar("Made")

_MOST_BLOCKS = 1 << 30  # of the first grid axis; the kernels stride on from there
_UNASKED_SHARED_BYTES = 48 << 10


def packed(a: cupy.ndarray) -> cupy.ndarray:
    """Return the stack C-contiguous; `a` itself if it is."""
    return cupy.ascontiguousarray(a)


def local_bytes(device_id: int) -> int:
    """Return how much shared memory a block may have after opting in."""
    runtime = cupy.cuda.runtime
    return int(
        runtime.deviceGetAttribute(
            runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, device_id
        )
    )


@lru_cache(maxsize=1024)
def _kernel(plan: Plan, device_id: int) -> cupy.RawKernel:
    """Compile a plan's kernel for a device."""
    folder = files("batchlas._kernels.cuda")
    text = "".join(
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("element.cuh", plan.source)
    )
    options = ("-std=c++17", *(f"-D{each}" for each in plan.defines))
    with cupy.cuda.Device(device_id):
        kernel = cupy.RawModule(code=text, options=options).get_function(plan.kernel)
        if plan.shared_bytes > _UNASKED_SHARED_BYTES:
            kernel.max_dynamic_shared_size_bytes = plan.shared_bytes
    return kernel


def enqueue(plan: Plan, batch: int, arguments: Sequence[int]) -> None:
    """Enqueue a kernel over a batch; every argument is passed as 64 bits."""
    kernel = _kernel(plan, cupy.cuda.runtime.getDevice())
    blocks = min(-(-batch // plan.matrices), _MOST_BLOCKS)
    grid = (blocks, plan.rows)
    kernel(grid, (plan.threads,), (*arguments, batch), shared_mem=plan.shared_bytes)


def required(plan: Made | None) -> Made:
    """Return a plan that ``can_run`` has promised."""
    if plan is None:
        message = "this kernel does not take this shape"
        raise ValueError(message)
    return plan


def potrf(family: str, a: cupy.ndarray, uplo: str) -> tuple[cupy.ndarray, cupy.ndarray]:
    """Return Cholesky factors and info; ``family`` is tiny, rows or cta."""
    n, dtype = a.shape[-1], NAME_OF[a.dtype.char]
    with a.device:
        if family == "tiny":
            plan = plans.potrf_tiny(n, dtype, uplo)
        elif family == "rows":
            plan = plans.potrf_rows(n, dtype, uplo)
        else:
            limit = local_bytes(a.data.device_id)
            plan = plans.potrf_cta(n, dtype, uplo, limit)
        source = packed(a)
        factor = cupy.empty(a.shape, a.dtype)
        info = cupy.empty(a.shape[:-2], "i4")
        pointers = (source.data.ptr, factor.data.ptr, info.data.ptr)
        enqueue(required(plan), info.size, pointers)
    return factor, info


def syev_jacobi(
    a: cupy.ndarray, uplo: str, *, vectors: bool
) -> tuple[cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return ascending eigenvalues, eigenvectors (None if not wanted) and info."""
    plan = plans.syev_jacobi(
        a.shape[-1], NAME_OF[a.dtype.char], uplo, vectors=vectors
    )
    with a.device:
        source = packed(a)
        w = cupy.empty(a.shape[:-1], a.dtype.char.lower())
        v = cupy.empty(a.shape, a.dtype) if vectors else None
        info = cupy.empty(a.shape[:-2], "i4")
        pointers = (source.data.ptr, w.data.ptr, pointer(v), info.data.ptr)
        enqueue(required(plan), info.size, pointers)
    return w, v, info


def gesvd_jacobi(
    a: cupy.ndarray, job: str
) -> tuple[cupy.ndarray | None, cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return u, descending s, vh (None for values alone) and info."""
    m, n = a.shape[-2:]
    plan = plans.gesvd_jacobi(m, n, NAME_OF[a.dtype.char], job)
    with a.device:
        source = packed(a)
        u, s, vh, info = svd_results(a, job)
        pointers = (pointer(u), s.data.ptr, pointer(vh), info.data.ptr)
        enqueue(required(plan), info.size, (source.data.ptr, *pointers))
    return u, s, vh, info


def svd_results(
    a: cupy.ndarray, job: str
) -> tuple[cupy.ndarray | None, cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return memory for a decomposition's results."""
    (*batch, m, n), k = a.shape, min(a.shape[-2:])
    s = cupy.empty((*batch, k), a.dtype.char.lower())
    info = cupy.empty(batch, "i4")
    if job == "none":
        return None, s, None, info
    u = cupy.empty((*batch, m, m if job == "all" else k), a.dtype)
    vh = cupy.empty((*batch, n if job == "all" else k, n), a.dtype)
    return u, s, vh, info


def pointer(a: cupy.ndarray | None) -> int:
    return 0 if a is None else int(a.data.ptr)
