"""Compiling and launching the CUDA kernels on CuPy arrays.

Decided here: how a plan becomes a kernel (NVRTC, kept by CuPy on disk and here per
device) and how a batch becomes a grid. Everything is enqueued on CuPy's current
stream; nothing waits.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, TypeVar

import cupy
import numpy as np
from cupy_backends.cuda.libs import cublas

from batchlas._kernels.cuda import plans
from batchlas._runtime.dtypes import NAME_OF
from batchlas._vendor.cuda_memory import pieces

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.cuda.plans import Plan

Made = TypeVar("Made")

_MOST_BLOCKS = 1 << 30  # of the first grid axis; the kernels stride on from there
_GEMM_BATCH = 65535  # cuBLAS puts the batch on a grid axis
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


_compiled: set[tuple[tuple[Plan, ...], int]] = set()


@lru_cache(maxsize=1024)
def _kernel(plan: Plan, device_id: int) -> cupy.RawKernel:
    """Compile a plan's kernel for a device."""
    folder = files("batchlas._kernels.cuda")
    text = "".join(
        folder.joinpath(name).read_text(encoding="utf-8")
        for name in ("element.cuh", *plan.sources)
    )
    options = ("-std=c++17", *(f"-D{each}" for each in plan.defines))
    with cupy.cuda.Device(device_id):
        kernel = cupy.RawModule(code=text, options=options).get_function(plan.kernel)
        if plan.shared_bytes > _UNASKED_SHARED_BYTES:
            kernel.max_dynamic_shared_size_bytes = plan.shared_bytes
    return kernel


def compile_together(wanted: Sequence[Plan]) -> None:
    """Compile the kernels of one shape at the same time where they are new."""
    device_id = cupy.cuda.runtime.getDevice()
    key = (tuple(wanted), device_id)
    if key in _compiled:
        return
    with ThreadPoolExecutor(len(wanted)) as pool:
        list(pool.map(lambda plan: _kernel(plan, device_id), wanted))
    _compiled.add(key)


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
    """Return Cholesky factors and info; `family` is tiny, rows, cta or blocked."""
    if family == "blocked":
        return potrf_blocked(a, uplo)
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


_GEMM = {
    "f": (cublas.sgemmStridedBatched, "f4"),
    "d": (cublas.dgemmStridedBatched, "f8"),
    "F": (cublas.cgemmStridedBatched, "c8"),
    "D": (cublas.zgemmStridedBatched, "c16"),
}


def potrf_blocked(a: cupy.ndarray, uplo: str) -> tuple[cupy.ndarray, cupy.ndarray]:
    """Return Cholesky factors and info, by panels and batched products.

    What is lower in C order is upper to cuBLAS, which is column-major: there the lower
    factor L is seen as L^T, and the columns of a panel less the earlier ones' products
    are C^T - conj(B) L^T, with B the panel's first rows.
    """
    n = a.shape[-1]
    plan = required(plans.potrf_blocked(n, NAME_OF[a.dtype.char], uplo))
    with a.device:
        source = packed(a)
        factor = cupy.empty(a.shape, a.dtype)
        info = cupy.empty(a.shape[:-2], "i4")
        batch, target = info.size, factor.data.ptr
        enqueue(plan.copy, batch, (source.data.ptr, target))
        for p in range(0, n, plan.width):
            if p:
                for piece in pieces(batch, _GEMM_BATCH):
                    start = target + piece.start * n * n * a.itemsize
                    count = piece.stop - piece.start
                    _take_products(start, a.dtype, (n, p, plan.width), uplo, count)
            enqueue(plan.panel, batch, (target, info.data.ptr, p))
        enqueue(plan.finish, batch, (target, info.data.ptr))
    return factor, info


def _take_products(
    target: int, dtype: cupy.dtype, sizes: tuple[int, int, int], uplo: str, batch: int
) -> None:
    """Subtract the earlier columns' products from the columns of a panel."""
    n, p, width = sizes
    rows, columns = n - p, min(width, n - p)
    gemm, kind = _GEMM[dtype.char]
    minus, plus = np.array([-1, 1], kind)[:, None]
    handle = cupy.cuda.device.get_cublas_handle()
    plain, adjoint = cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_C
    size = dtype.itemsize
    left = target + p * size * (n if uplo == "L" else 1)
    here = target + p * (n + 1) * size
    if uplo == "L":
        shape = (adjoint, plain, columns, rows, p)
    else:
        shape = (plain, adjoint, rows, columns, p)
    gemm(
        *(handle, *shape, minus.ctypes.data, left, n, n * n, left, n, n * n),
        *(plus.ctypes.data, here, n, n * n, batch),
    )


def syev_jacobi(
    a: cupy.ndarray, uplo: str, *, vectors: bool
) -> tuple[cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return ascending eigenvalues, eigenvectors (None if not wanted) and info."""
    plan = plans.syev_jacobi(a.shape[-1], NAME_OF[a.dtype.char], uplo, vectors=vectors)
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
