"""Launching the decompositions by reduction on CuPy arrays.

Decided here: the order of the kernels, their workspace (from CuPy's pool, cut where a
batch would take more than a part of what is free) and the rounds of values and
rotations. Nothing waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import cupy

from batchlas._kernels.cuda import plans, reductions
from batchlas._kernels.cuda.launch import (
    compile_together,
    enqueue,
    local_bytes,
    packed,
    pointer,
    required,
    svd_results,
)
from batchlas._runtime.dtypes import NAME_OF
from batchlas._vendor.cuda_memory import most_matrices, pieces

if TYPE_CHECKING:
    from batchlas._kernels.cuda.reductions import Reduction

_LIMIT = 1 << 30
_BEYOND = 32  # numbers per matrix that are read past the last rotation


def syev_tridiagonal(
    a: cupy.ndarray, uplo: str, *, vectors: bool
) -> tuple[cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return ascending eigenvalues, eigenvectors (None if not wanted) and info."""
    n, dtype = a.shape[-1], NAME_OF[a.dtype.char]
    with a.device:
        source = packed(a)
        w = cupy.empty(a.shape[:-1], a.dtype.char.lower())
        v = cupy.empty(a.shape, a.dtype) if vectors else None
        info = cupy.empty(a.shape[:-2], "i4")
        limit = local_bytes(a.data.device_id)
        sized = batch_size(info.size)
        plan = required(
            reductions.syev_tridiagonal(n, dtype, uplo, limit, sized, vectors=vectors)
        )
        results = () if v is None else (v,)
        _run(plan, source, dtype, (w, info, results))
    return w, v, info


def gesvd_bidiagonal(
    a: cupy.ndarray, job: str
) -> tuple[cupy.ndarray | None, cupy.ndarray, cupy.ndarray | None, cupy.ndarray]:
    """Return u, descending s, vh (None for values alone) and info."""
    m, n = a.shape[-2:]
    dtype = NAME_OF[a.dtype.char]
    with a.device:
        source = packed(a)
        u, s, vh, info = svd_results(a, job)
        limit = local_bytes(a.data.device_id)
        sized = batch_size(info.size)
        plan = required(reductions.gesvd_bidiagonal(m, n, dtype, job, limit, sized))
        # The side with more rows first, as the plan has it.
        results = () if u is None else (vh, u) if m < n else (u, vh)
        _run(plan, source, dtype, (s, info, results))
    return u, s, vh, info


def batch_size(batch: int) -> int:
    """Return a batch as plans see it, which only size blocks by it."""
    return min(plans.power_of_two(batch), 1 << 20)


def _run(
    plan: Reduction,
    source: cupy.ndarray,
    dtype: str,
    outputs: tuple[cupy.ndarray, cupy.ndarray, tuple[cupy.ndarray, ...]],
) -> None:
    """Enqueue the kernels over the batch, in pieces that fit in memory."""
    values, info, vectors = outputs
    batch = info.size
    compile_together((plan.reduce, *plan.accumulate, plan.values, *plan.rotate))
    most = most_matrices(batch, plan.matrix_bytes(dtype), _LIMIT)
    workspace = _Workspace(plan, most, source.dtype)
    arrays = (source, values, info, *vectors)
    steps = [array.nbytes // batch for array in arrays]
    for piece in pieces(batch, most):
        at = [
            array.data.ptr + piece.start * step
            for array, step in zip(arrays, steps, strict=True)
        ]
        _run_piece(plan, workspace, at, piece.stop - piece.start)


class _Workspace:
    """Memory that the kernels share, for the matrices of one piece."""

    def __init__(self, plan: Reduction, batch: int, dtype: cupy.dtype) -> None:
        real = dtype.char.lower()
        lanes = plan.values.matrices
        whole = -(-batch // lanes) * lanes  # blocks write their matrices side by side
        turns = plan.turns if plan.rotate else 0
        numbers = plan.room * plan.numbers if plan.rotate else 0
        self.reduced = cupy.empty((batch, plan.reduced), dtype)
        self.reflectors = cupy.empty((batch, plan.reflectors), dtype)
        self.diagonals = cupy.empty((batch, 2 * plan.order), real)
        self.rotations = cupy.empty(whole * numbers + _BEYOND * lanes, real)
        self.floors = cupy.empty(batch, real)
        self.sweeps = cupy.empty((whole, turns), "i8")
        self.orders = cupy.empty((batch, plan.order), "i4")
        self.integers = cupy.empty((4, batch), "i4")


def _run_piece(
    plan: Reduction, workspace: _Workspace, at: list[int], batch: int
) -> None:
    source, values, info, *vectors = at
    work = workspace
    reduced, reflectors = pointer(work.reduced), pointer(work.reflectors)
    diagonals, exponents = pointer(work.diagonals), pointer(work.integers[0])
    counts, states, bottoms = (pointer(work.integers[i]) for i in (1, 2, 3))
    places: tuple[int, ...] = (reduced, reflectors)
    if not plan.reflectors:  # the vectors are accumulated at once
        places = (vectors[0] if vectors else 0,)
    enqueue(plan.reduce, batch, (source, *places, diagonals, exponents, info))
    for kernel, target in zip(plan.accumulate, vectors, strict=False):
        enqueue(kernel, batch, (reduced, reflectors, target))
    lists = pointer(work.rotations), pointer(work.sweeps), counts, pointer(work.orders)
    for turn in range(plan.rounds):
        head = (diagonals, values, *lists, states, bottoms, pointer(work.floors))
        last = plan.rounds - 1
        enqueue(plan.values, batch, (*head, exponents, info, turn, last))
        for kernel, target in zip(plan.rotate, vectors, strict=True):
            enqueue(kernel, batch, (target, *lists, states, info))
