"""cuSOLVER's singular value decompositions for CuPy arrays.

Orders up to 32 go to gesvdjBatched. It computes vectors whatever it is asked, and
faults when asked for values alone of a rectangular matrix, so it is always asked for
vectors. Larger ones go to one gesvd per matrix: gesvdaStridedBatched is faster but
squares the condition number, and misses an accuracy of 64 n eps.

Layout. cuSOLVER is column-major, our buffers are in C order: it sees the transpose of a
buffer.

- gesvdjBatched: the buffer holds A^T, so cuSOLVER sees A = U S V^H and returns V, not
  V^H, column by column: u[i, k] = U_buffer[k, i] and vh[k, j] = conj(V_buffer[k, j]).
- gesvd takes no matrix with fewer rows than columns. For m <= n the buffer holds A, so
  it sees the tall A^T = P S Q, and A = Q^T S P^T: read in C order, its P is our vh and
  its Q is our u, each in its place. For m > n the buffer holds A^T, so it sees A, and
  both factors are read transposed: u[i, k] = P_buffer[k, i], vh[k, j] = Q_buffer[j, k].
  Nothing is conjugated.
"""

from __future__ import annotations

from typing import NamedTuple

import cupy
from cupy_backends.cuda.libs import cusolver as lib

from batchlas._vendor.cuda_kernels import (
    Status,
    View,
    addresses,
    emit,
    new_status,
    prepare,
    view_of,
)
from batchlas._vendor.cuda_memory import most_matrices, pieces

_JACOBI_ORDER = 32
_JACOBI_BATCH = 16384
_LOOP_BATCH = 1 << 30  # calls are per matrix; memory alone cuts the batch

_GESVDJ = {
    "f": (lib.sgesvdjBatched_bufferSize, lib.sgesvdjBatched),
    "d": (lib.dgesvdjBatched_bufferSize, lib.dgesvdjBatched),
    "F": (lib.cgesvdjBatched_bufferSize, lib.cgesvdjBatched),
    "D": (lib.zgesvdjBatched_bufferSize, lib.zgesvdjBatched),
}
_GESVD = {
    "f": (lib.sgesvd_bufferSize, lib.sgesvd),
    "d": (lib.dgesvd_bufferSize, lib.dgesvd),
    "F": (lib.cgesvd_bufferSize, lib.cgesvd),
    "D": (lib.zgesvd_bufferSize, lib.zgesvd),
}


class _Results(NamedTuple):
    """Flat results; u and vh are None for values alone."""

    u: cupy.ndarray | None
    s: cupy.ndarray
    vh: cupy.ndarray | None
    info: cupy.ndarray

    def part(self, piece: slice) -> _Results:
        """Return the results of part of the matrices."""
        return _Results(*(None if x is None else x[piece] for x in self))


def gesvd(
    a: cupy.ndarray, job: str
) -> tuple[cupy.ndarray | None, cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return u, descending s, vh (None for values alone) and info.

    Parameters
    ----------
    a : cupy.ndarray, shape (..., m, n)
    job : {"none", "thin", "all"}
        Values alone; u and vh of min(m, n) columns and rows; or both square.
    """
    (*batch, m, n), k = a.shape, min(a.shape[-2:])
    with a.device:
        s = cupy.empty((*batch, k), a.dtype.char.lower())
        info = cupy.empty(batch, "i4")
        u = vh = None
        if job != "none":
            u = cupy.empty((*batch, m, m if job == "all" else k), a.dtype)
            vh = cupy.empty((*batch, n if job == "all" else k, n), a.dtype)
        view = view_of(a)
        flat = _Results(
            None if u is None else u.reshape(view.batch, *u.shape[-2:]),
            s.reshape(view.batch, k),
            None if vh is None else vh.reshape(view.batch, *vh.shape[-2:]),
            info.reshape(view.batch),
        )
        if max(m, n) <= _JACOBI_ORDER:
            _jacobi(view, (m, n), a.dtype, flat)
        elif m <= n:
            _wide(view, (m, n), a.dtype, job, flat)
        else:
            _tall(view, (m, n), a.dtype, job, flat)
    return u, s, vh, info


def _advance(view: View, piece: slice) -> View:
    """Return the view that starts at the first matrix of `piece`."""
    return view._replace(pointer=view.pointer + piece.start * view.batch_stride)


def _emit_values(results: _Results, status: Status) -> None:
    """Finish s, which the routine has written in place, and info."""
    row, k = results.s[:, None, :], results.s.shape[-1]
    emit(row, (k, k, 1), row, status, info=results.info)


def _jacobi(
    view: View, shape: tuple[int, int], dtype: cupy.dtype, results: _Results
) -> None:
    """Decompose small matrices by gesvdjBatched."""
    m, n = shape
    status = new_status(view.batch)
    matrix_bytes = (m * n + m * m + n * n) * dtype.itemsize
    most = most_matrices(view.batch, matrix_bytes, _JACOBI_BATCH)
    work = cupy.empty((most, n, m), dtype)
    p, q = cupy.empty((most, m, m), dtype), cupy.empty((most, n, n), dtype)
    for piece in pieces(view.batch, most):
        state, out = status[piece], results.part(piece)
        staged = work[: piece.stop - piece.start]
        prepare(_advance(view, piece).transposed(), staged, state)
        _gesvdj_batched(staged, out.s, p, q, state.codes)
        _emit_values(out, state)
        if out.u is not None and out.vh is not None:
            emit(p, (m * m, 1, m), out.u, state)
            emit(q, (n * n, n, 1), out.vh, state, conjugate=True)


def _gesvdj_batched(
    work: cupy.ndarray,
    s: cupy.ndarray,
    p: cupy.ndarray,
    q: cupy.ndarray,
    codes: cupy.ndarray,
) -> None:
    """Enqueue gesvdjBatched over column-major m x n matrices."""
    batch, n, m = work.shape
    query, routine = _GESVDJ[work.dtype.char]
    handle = cupy.cuda.device.get_cusolver_handle()
    params = lib.createGesvdjInfo()  # read before the call returns
    try:
        mode = lib.CUSOLVER_EIG_MODE_VECTOR
        matrices = (work.data.ptr, m, s.data.ptr, p.data.ptr, m, q.data.ptr, n)
        head = (handle, mode, m, n, *matrices)
        size = query(*head, params, batch)
        scratch = cupy.empty(size, work.dtype)
        tail = (codes.data.ptr, params, batch)
        routine(*head, scratch.data.ptr, size, *tail)
    finally:
        lib.destroyGesvdjInfo(params)


def _wide(
    view: View,
    shape: tuple[int, int],
    dtype: cupy.dtype,
    job: str,
    results: _Results,
) -> None:
    """Decompose matrices with m <= n by gesvd, straight into the results."""
    m, n = shape
    status = new_status(view.batch)
    most = most_matrices(view.batch, m * n * dtype.itemsize, _LOOP_BATCH)
    work = cupy.empty((most, m, n), dtype)
    for piece in pieces(view.batch, most):
        state, out = status[piece], results.part(piece)
        staged = work[: piece.stop - piece.start]
        prepare(_advance(view, piece), staged, state)
        _gesvd_each(staged, job, out.s, (out.vh, out.u), state.codes)
        _emit_values(out, state)
        for factor in (out.u, out.vh):
            if factor is not None:
                rows, columns = factor.shape[1:]
                emit(factor, (rows * columns, columns, 1), factor, state)


def _tall(
    view: View,
    shape: tuple[int, int],
    dtype: cupy.dtype,
    job: str,
    results: _Results,
) -> None:
    """Decompose matrices with m > n by gesvd, and transpose its factors."""
    m, n = shape
    columns = m if job == "all" else n
    status = new_status(view.batch)
    matrix_bytes = (m * n + m * columns + n * n) * dtype.itemsize
    most = most_matrices(view.batch, matrix_bytes, _LOOP_BATCH)
    work = cupy.empty((most, n, m), dtype)
    p = q = None
    if job != "none":
        p = cupy.empty((most, columns, m), dtype)
        q = cupy.empty((most, n, n), dtype)
    for piece in pieces(view.batch, most):
        state, out = status[piece], results.part(piece)
        staged = work[: piece.stop - piece.start]
        prepare(_advance(view, piece).transposed(), staged, state)
        _gesvd_each(staged, job, out.s, (p, q), state.codes)
        _emit_values(out, state)
        if out.u is not None and out.vh is not None:
            emit(p, (m * columns, 1, m), out.u, state)
            emit(q, (n * n, 1, n), out.vh, state)


def _gesvd_each(
    work: cupy.ndarray,
    job: str,
    s: cupy.ndarray,
    factors: tuple[cupy.ndarray | None, cupy.ndarray | None],
    codes: cupy.ndarray,
) -> None:
    """Enqueue one gesvd per column-major matrix; `factors` receive P and Q."""
    _, columns, rows = work.shape
    query, routine = _GESVD[work.dtype.char]
    letter = ord({"none": "N", "thin": "S", "all": "A"}[job])
    handle = cupy.cuda.device.get_cusolver_handle()
    size = query(handle, rows, columns)
    scratch = cupy.empty(size, work.dtype)
    for a, values, code, p, q in addresses(work, s, codes, *factors):
        head = (handle, letter, letter, rows, columns, a, rows, values)
        tail = (scratch.data.ptr, size, 0, code)
        routine(*head, p, rows, q, columns, *tail)
