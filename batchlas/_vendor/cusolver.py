"""cuSOLVER for CuPy arrays: the family ``vendor``; see `batchlas._vendor`.

Nothing here waits: every call is enqueued on CuPy's current stream, and `info` is an
array on the device. Scratch goes back to CuPy's memory pool when a function returns.
The pool gives memory out again on the same stream only, so a later owner's work comes
after ours. A negative status would mean that we passed a wrong argument. cuSOLVER
refuses such a call at once, which raises; should one appear on the device all the
same, `emit` reports the matrix as failed, since raising would mean waiting.

Layout. cuSOLVER is column-major and our buffers are in C order, so it sees the
transpose B^T of a buffer B, and for a Hermitian A, A^T = conj(A).

- potrf, lower: B holds the lower triangle of A, so cuSOLVER is told "upper" and finds
  conj(A) = U^H U. Conjugated, A = U^T conj(U) = L L^H with L = U^T, and U^T is what the
  buffer shows in C order. Upper: likewise conj(A) = L L^H gives A = R^H R with R = L^T.
  Nothing is conjugated or moved.
- syev: B = A, so cuSOLVER solves conj(A) y = w y, that is A conj(y) = w conj(y). Its
  vectors are columns in column-major order, the rows of the buffer: v[i, k] is
  conj(B[k, i]).
- gesvd: see `batchlas._vendor.cusolver_svd`.
"""

from __future__ import annotations

import warnings
from functools import cache

import cupy
from cupy_backends.cuda.libs import cublas
from cupy_backends.cuda.libs import cusolver as lib

from batchlas._vendor import xsyevbatched
from batchlas._vendor.cuda_kernels import (
    Status,
    addresses,
    arrange,
    emit,
    new_status,
    prepare,
    view_of,
)
from batchlas._vendor.cuda_memory import fits, most_matrices, pieces
from batchlas._vendor.cusolver_svd import gesvd
from batchlas.exceptions import BatchlasWarning

__all__ = ["gesvd", "potrf", "syev", "syev_routine"]

# Most matrices per call. potrfBatched puts the batch on a grid axis, which may have
# 65,535 blocks; XsyevBatched fails from 65,536 matrices on and takes 265 KB of scratch
# for each 2x2; syevjBatched was seen to do 262,144.
_POTRF_BATCH = 65535
_XSYEV_BATCH = 16384
_SYEVJ_BATCH = 262144
# syevjBatched is documented for orders up to 32. XsyevBatched is not called there: the
# eigenvectors of 17x17 matrices of rank one are not orthogonal (cuSOLVER of CUDA 13.0).
_SYEVJ_ORDER = 32
# potrfBatched is made for many small matrices. Up to one matrix per so many rows (2 of
# order 512, 1 of 256), each gets a potrf of its own.
_ROWS_PER_MATRIX = 256

_POTRF_BATCHED = {
    "f": lib.spotrfBatched,
    "d": lib.dpotrfBatched,
    "F": lib.cpotrfBatched,
    "D": lib.zpotrfBatched,
}
_POTRF = {
    "f": (lib.spotrf_bufferSize, lib.spotrf),
    "d": (lib.dpotrf_bufferSize, lib.dpotrf),
    "F": (lib.cpotrf_bufferSize, lib.cpotrf),
    "D": (lib.zpotrf_bufferSize, lib.zpotrf),
}
_SYEVJ = {
    "f": (lib.ssyevjBatched_bufferSize, lib.ssyevjBatched),
    "d": (lib.dsyevjBatched_bufferSize, lib.dsyevjBatched),
    "F": (lib.cheevjBatched_bufferSize, lib.cheevjBatched),
    "D": (lib.zheevjBatched_bufferSize, lib.zheevjBatched),
}
_SYEVD = {
    "f": (lib.ssyevd_bufferSize, lib.ssyevd),
    "d": (lib.dsyevd_bufferSize, lib.dsyevd),
    "F": (lib.cheevd_bufferSize, lib.cheevd),
    "D": (lib.zheevd_bufferSize, lib.zheevd),
}


def potrf(a: cupy.ndarray, uplo: str) -> tuple[cupy.ndarray, cupy.ndarray]:
    """Return Cholesky factors and info.

    Parameters
    ----------
    a : cupy.ndarray, shape (..., n, n)
    uplo : {"L", "U"}
        Triangle that is read and returned; the other one of the result is zero.
    """
    with a.device:
        view, n = view_of(a), a.shape[-1]
        factor = cupy.empty(a.shape, a.dtype)
        info = cupy.empty(a.shape[:-2], "i4")
        stack = factor.reshape(view.batch, n, n)
        status = new_status(view.batch)
        # What is lower in C order is upper to cuSOLVER.
        fill = (
            cublas.CUBLAS_FILL_MODE_UPPER
            if uplo == "L"
            else cublas.CUBLAS_FILL_MODE_LOWER
        )
        if view.batch <= n // _ROWS_PER_MATRIX:
            prepare(view, stack, status, part=uplo)
            _potrf_each(stack, fill, status.codes)
        else:
            pointers = cupy.empty(view.batch, "i8")
            prepare(view, stack, status, part=uplo, pointers=pointers)
            _potrf_batched(stack, pointers, fill, status.codes)
        emit(stack, (n * n, n, 1), stack, status, part=uplo, info=info)
    return factor, info


def _potrf_each(stack: cupy.ndarray, fill: int, codes: cupy.ndarray) -> None:
    """Factor the matrices one by one."""
    n = stack.shape[-1]
    query, routine = _POTRF[stack.dtype.char]
    handle = cupy.cuda.device.get_cusolver_handle()
    size = query(handle, fill, n, stack.data.ptr, n)
    scratch = cupy.empty(size, stack.dtype)
    for matrix, code in addresses(stack, codes):
        routine(handle, fill, n, matrix, n, scratch.data.ptr, size, code)


def _potrf_batched(
    stack: cupy.ndarray, pointers: cupy.ndarray, fill: int, codes: cupy.ndarray
) -> None:
    """Factor the matrices that `pointers` addresses, in as few calls as allowed."""
    batch, n, _ = stack.shape
    routine = _POTRF_BATCHED[stack.dtype.char]
    handle = cupy.cuda.device.get_cusolver_handle()
    for piece in pieces(batch, _POTRF_BATCH):
        count = piece.stop - piece.start
        addresses, code = pointers[piece].data.ptr, codes[piece].data.ptr
        routine(handle, fill, n, addresses, n, code, count)


def syev(
    a: cupy.ndarray, uplo: str, *, vectors: bool
) -> tuple[cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return ascending eigenvalues, eigenvectors (None if not wanted) and info.

    Parameters
    ----------
    a : cupy.ndarray, shape (..., n, n)
    uplo : {"L", "U"}
        Triangle that is read.
    vectors : bool
        Whether eigenvectors are wanted.
    """
    with a.device:
        view, n = view_of(a), a.shape[-1]
        w = cupy.empty(a.shape[:-1], a.dtype.char.lower())
        v = cupy.empty(a.shape, a.dtype) if vectors else None
        info = cupy.empty(a.shape[:-2], "i4")
        status = new_status(view.batch)
        limit = _SYEVJ_BATCH if n <= _SYEVJ_ORDER else _XSYEV_BATCH
        most = most_matrices(view.batch, n * n * a.itemsize, limit)
        work = cupy.empty((most, n, n), a.dtype)
        most = _shrink_to_workspace(work, vectors=vectors)
        values, flat_info = w.reshape(-1, n), info.reshape(-1)
        for piece in pieces(view.batch, most):
            staged, state = work[: piece.stop - piece.start], status[piece]
            pointer = view.pointer + piece.start * view.batch_stride
            source = view._replace(pointer=pointer)
            prepare(source, staged, state, part=uplo, mirror=True)
            found = values[piece]
            order = _solve(staged, found, state, vectors=vectors)
            row = found[:, None, :]
            emit(row, (n, n, 1), row, state, info=flat_info[piece])
            if v is not None:
                out = v.reshape(-1, n, n)[piece]
                strides = (n * n, 1, n)
                emit(staged, strides, out, state, conjugate=True, order=order)
    return w, v, info


def syev_routine(n: int) -> str:
    """Return which of cuSOLVER's eigensolvers `syev` calls at order `n`."""
    if n <= _SYEVJ_ORDER:
        return "syevjBatched"
    return "syevd" if xsyevbatched.why_missing() else "XsyevBatched"


@cache
def _warn_missing() -> None:
    """Say once why the batched eigensolver is not used."""
    message = f"{xsyevbatched.why_missing()}; syevd is called for each matrix instead"
    warnings.warn(message, BatchlasWarning, stacklevel=2)


def _shrink_to_workspace(work: cupy.ndarray, *, vectors: bool) -> int:
    """Return for how many of these matrices the routine's own scratch fits."""
    most: int = work.shape[0]
    n = work.shape[-1]
    if syev_routine(n) != "XsyevBatched":
        return most
    w = cupy.empty((most, n), work.dtype.char.lower())
    while most > 1:
        needed, _ = xsyevbatched.workspace_bytes(work[:most], w, vectors=vectors)
        if fits(needed):
            break
        most //= 2
    return most


def _solve(
    work: cupy.ndarray, w: cupy.ndarray, status: Status, *, vectors: bool
) -> cupy.ndarray | None:
    """Enqueue the eigensolver over staged Hermitian matrices, in place.

    Returns which vector belongs to each value; None where they lie as the values do.
    """
    routine = syev_routine(work.shape[-1])
    if routine == "XsyevBatched":
        # It leaves equal eigenvalues out of order by their rounding errors.
        found = cupy.empty(w.shape, w.dtype)
        xsyevbatched.solve(work, found, status.codes, vectors=vectors)
        return arrange(found, w)
    if routine == "syevjBatched":
        _syevj_batched(work, w, status.codes, vectors=vectors)
    else:
        _warn_missing()
        _syevd_each(work, w, status.codes, vectors=vectors)
    return None


def _syevj_batched(
    work: cupy.ndarray, w: cupy.ndarray, codes: cupy.ndarray, *, vectors: bool
) -> None:
    """Solve by batched Jacobi; `params` is read before the call returns."""
    batch, n, _ = work.shape
    query, routine = _SYEVJ[work.dtype.char]
    handle = cupy.cuda.device.get_cusolver_handle()
    params = lib.createSyevjInfo()
    try:
        fill = cublas.CUBLAS_FILL_MODE_LOWER
        head = (handle, int(vectors), fill, n, work.data.ptr, n, w.data.ptr)
        size = query(*head, params, batch)
        scratch = cupy.empty(size, work.dtype)
        tail = (codes.data.ptr, params, batch)
        routine(*head, scratch.data.ptr, size, *tail)
    finally:
        lib.destroySyevjInfo(params)


def _syevd_each(
    work: cupy.ndarray, w: cupy.ndarray, codes: cupy.ndarray, *, vectors: bool
) -> None:
    """Solve the matrices one by one by divide and conquer."""
    n = work.shape[-1]
    query, routine = _SYEVD[work.dtype.char]
    handle = cupy.cuda.device.get_cusolver_handle()
    mode, fill = int(vectors), cublas.CUBLAS_FILL_MODE_LOWER
    size = query(handle, mode, fill, n, work.data.ptr, n, w.data.ptr)
    scratch = cupy.empty(size, work.dtype)
    for matrix, values, code in addresses(work, w, codes):
        head = (handle, mode, fill, n, matrix, n, values)
        routine(*head, scratch.data.ptr, size, code)
