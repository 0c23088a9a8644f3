"""syev, the symmetric or Hermitian eigenproblem: the decision what runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from batchlas import _select as select
from batchlas._backends import any_failed, borrowed, in_host_memory, stacked
from batchlas._kernels import eigen
from batchlas._kernels.limits import JACOBI_LARGEST, QL_LARGEST, ql_capacity
from batchlas._kernels.renderer_choice import DPEX, renderer_for
from batchlas._ops.cuda import (
    SYEV_FAMILIES,
    SYEV_ORDER,
    can_run_syev,
    launch_syev,
)
from batchlas._ops.families import (
    Threads,
    Vendor,
    can_run_library,
    library_families,
)
from batchlas._runtime.dtypes import NAME_OF, REAL_OF
from batchlas._vendor import adapter_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._backends import Backend
    from batchlas._kernels.eigen import Triangle
    from batchlas._runtime.devices import Device
    from batchlas._runtime.lease import Layout


class SyevCall(NamedTuple):
    """What a choice may depend on; uplo never changes a ranking."""

    dtype: str
    array: str
    jobz: str
    n: int
    batch: int


@dataclass(frozen=True, slots=True)
class Jacobi(select.Family):
    """Cyclic Jacobi on one matrix per lane of a vector, for the smallest orders."""

    name: ClassVar[str] = "jacobi"
    width: int


@dataclass(frozen=True, slots=True)
class QL(select.Family):
    """Tridiagonal reduction and QL on one matrix per lane of a vector."""

    name: ClassVar[str] = "ql"
    width: int


def candidates(dtype: str, kind: str) -> tuple[select.Family, ...]:
    """Return every choice; a vector fills 256 or 512 bits, of float64 512 or 1024.

    Where the registers allow it, two vectors at once hide what each one waits for; 16
    lanes are the most that there are.
    """
    if kind == "cupy":
        return (*SYEV_FAMILIES, *library_families(dtype, kind))
    real_bytes = 4 if dtype in ("float32", "complex64") else 8
    least = 64 if dtype == "float64" else 32
    widths = (least // real_bytes, 2 * least // real_bytes)
    native = (*map(Jacobi, widths), *map(QL, widths))
    return (*native, *library_families(dtype, kind))


def can_run(choice: select.Family, call: SyevCall, device: Device) -> bool:
    """Whether a choice would solve this call rightly."""
    if choice in SYEV_FAMILIES:
        return can_run_syev(choice, call, device)
    if not isinstance(choice, Jacobi | QL):
        return can_run_library(choice, call, device)
    if renderer_for(device) is None:
        return False
    if _is_dpex(device):
        from batchlas._kernels import eigen_dpex

        largest = QL_LARGEST if eigen_dpex.fits(call.dtype, device) else 0
    else:
        largest = ql_capacity(call.dtype, choice.width)
    if isinstance(choice, Jacobi):
        largest = min(largest, JACOBI_LARGEST)
    return call.n <= largest


def scratch(choice: select.Family, call: SyevCall, device: Device) -> Layout | None:
    """Return what a choice borrows of the workspace: room to fill up a small batch."""
    if not isinstance(choice, Jacobi | QL) or _is_dpex(device):
        return None
    vectors = call.jobz == "V"
    return eigen.syev_scratch(
        call.batch, call.n, call.dtype, choice.width, vectors=vectors
    )


def _is_dpex(device: Device) -> bool:
    """Whether numba-dpex renders the kernels."""
    rendering = renderer_for(device)
    return rendering is not None and rendering.renderer == DPEX


SPEC = select.OpSpec(
    op="syev",
    library="lapack",
    keys=SyevCall._fields,
    candidates=candidates,
    can_run=can_run,
    last_resort=(
        *SYEV_ORDER,
        Vendor.name,
        Threads.name,
        Jacobi.name,
        QL.name,
    ),
    scratch=scratch,
)


def key_of(backend: Backend, a: Any, *, vectors: bool) -> SyevCall:
    """Return the table key of a call on ``a``, of shape ``(..., n, n)``."""
    n = a.shape[-1]
    jobz = "V" if vectors else "N"
    return SyevCall(NAME_OF[a.dtype.char], backend.kind, jobz, n, a.size // (n * n))


def syev(backend: Backend, a: Any, uplo: str, *, vectors: bool) -> tuple[Any, Any, Any]:
    """Solve the eigenproblem of a checked stack.

    Parameters
    ----------
    backend : Backend
        The backend of `a`.
    a : array, shape (..., n, n)
        Not empty, of one of the four LAPACK dtypes; only triangle `uplo` is read.
    uplo : {"L", "U"}
    vectors : bool

    Returns
    -------
    w : real array, shape (..., n)
        Ascending eigenvalues.
    v : array, shape (..., n, n), or None
        Orthonormal eigenvectors in columns.
    info : int32 array of the batch's shape, or None if no matrix failed
    """

    def launch(choice: select.Family) -> tuple[Any, Any, Any]:
        if choice in SYEV_FAMILIES:
            return launch_syev(choice, a, uplo, vectors=vectors)
        if isinstance(choice, Jacobi | QL):
            return _launch_native(backend, a, uplo, call, choice)
        return adapter_of(backend.kind, choice.name).syev(a, uplo, vectors=vectors)

    call = key_of(backend, a, vectors=vectors)
    return select.run(SPEC, call, backend.device(a), launch)


def _launch_native(
    backend: Backend, a: Any, uplo: str, call: SyevCall, choice: Jacobi | QL
) -> tuple[Any, Any, Any]:
    """Run a kernel on the array's queue."""
    stack, by_columns = _by_rows_or_columns(backend, a)
    side = eigen.triangle(uplo, by_columns=by_columns)
    w = backend.empty(a.shape[:-1], np.dtype(REAL_OF[a.dtype.char]), a)
    v = backend.empty(a.shape, a.dtype, a) if call.jobz == "V" else None
    info = backend.empty(a.shape[:-2], np.dtype(np.int32), a)
    arrays = (stack, w, info) if v is None else (stack, w, v, info)
    failed = _solve(backend, arrays, side, call, choice)
    return w, v, info if failed else None


def _by_rows_or_columns(backend: Backend, a: Any) -> tuple[Any, bool]:
    """Return the stack C-contiguous, and if that is the transpose of its matrices.

    Sums of a matrix and its transpose are often stored by columns.
    """
    if not a.flags.c_contiguous:
        flipped = a.swapaxes(-1, -2)
        if flipped.flags.c_contiguous:
            return backend.packed(flipped), True
    return backend.packed(a), False


def _solve(
    backend: Backend,
    arrays: Sequence[Any],
    side: Triangle,
    call: SyevCall,
    choice: Jacobi | QL,
) -> bool:
    """Run the kernel of the renderer that the device takes; say if a matrix failed."""
    stack, *_, info = arrays
    axes = stack.ndim - 2
    device = backend.device(stack)
    rendering = renderer_for(device)
    if rendering is not None and rendering.is_noteworthy:
        select.note(rendering)
    if _is_dpex(device):
        from batchlas._kernels import eigen_dpex

        on_items = eigen_dpex.jacobi if isinstance(choice, Jacobi) else eigen_dpex.ql
        on_items(stacked(arrays, axes, call.batch), side)
        return any_failed(backend, info)
    in_lanes = eigen.jacobi if isinstance(choice, Jacobi) else eigen.ql
    with borrowed(backend, stack, scratch(choice, call, device)) as room:
        views = [in_host_memory(backend, array) for array in arrays]
        views = stacked(views, axes, call.batch)
        padded = [in_host_memory(backend, array) for array in room]
        return in_lanes(backend.queue(stack), views, side, choice.width, padded)
