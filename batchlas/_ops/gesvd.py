"""gesvd, the singular value decomposition: the decision what runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from batchlas import _select as select
from batchlas._backends import any_failed, borrowed, in_host_memory, stacked
from batchlas._kernels import singular
from batchlas._kernels.renderer_choice import DPEX, renderer_for
from batchlas._ops.cuda import (
    GESVD_FAMILIES,
    GESVD_ORDER,
    can_run_gesvd,
    launch_gesvd,
)
from batchlas._ops.families import Threads, Vendor, can_run_library, library_families
from batchlas._ops.syev import syev
from batchlas._runtime.dtypes import NAME_OF, REAL_OF
from batchlas._vendor import adapter_of

if TYPE_CHECKING:
    from batchlas._backends import Backend
    from batchlas._runtime.devices import Device
    from batchlas._runtime.lease import Layout


class GesvdCall(NamedTuple):
    """What a choice may depend on; ``vec`` is none, thin or all."""

    dtype: str
    array: str
    vec: str
    m: int
    n: int
    batch: int


@dataclass(frozen=True, slots=True)
class Jacobi(select.Family):
    """One-sided Jacobi, one matrix per lane of a vector of `width`."""

    name: ClassVar[str] = "jacobi"
    width: int


@dataclass(frozen=True, slots=True)
class Bidiagonal(select.Family):
    """Bidiagonalisation and QR iterations, one matrix per lane of a vector."""

    name: ClassVar[str] = "bidiagonal"
    width: int


def candidates(dtype: str, kind: str) -> tuple[select.Family, ...]:
    """Return every choice; vectors of float64 fill 512 bits or twice that.

    What one instruction waits for, a second one hides.
    """
    library = library_families(dtype, kind)
    if kind == "cupy":
        return (*GESVD_FAMILIES, *library)
    widths = (8, 16)
    return (*map(Jacobi, widths), *map(Bidiagonal, widths), *library)


def can_run(choice: select.Family, call: GesvdCall, device: Device) -> bool:
    """Whether a choice would decompose this call rightly."""
    if choice in GESVD_FAMILIES:
        return can_run_gesvd(choice, call, device)
    if not isinstance(choice, Jacobi | Bidiagonal):
        return can_run_library(choice, call, device)
    rendering = renderer_for(device, _SLOW_DPEX)
    if rendering is None:
        return False
    return rendering.renderer != DPEX or device.has_fp64 or call.dtype in _SINGLE


_SINGLE = ("float32", "complex64")
# Seconds to minutes, for kernels that OpenCL's compiler takes one second for.
_SLOW_DPEX = "it compiles these kernels too slowly"


def scratch(choice: select.Family, call: GesvdCall, device: Device) -> Layout | None:
    """Return what a choice borrows of the workspace: the matrices it works on."""
    if not isinstance(choice, Jacobi | Bidiagonal):
        return None
    rendering = renderer_for(device, _SLOW_DPEX)
    if rendering is not None and rendering.renderer == DPEX:
        return None
    shape = (call.m, call.n)
    return singular.gesvd_scratch(
        choice.name, call.batch, shape, call.dtype, call.vec, choice.width
    )


SPEC = select.OpSpec(
    op="gesvd",
    library="lapack",
    keys=GesvdCall._fields,
    candidates=candidates,
    can_run=can_run,
    last_resort=(
        *GESVD_ORDER,
        Vendor.name,
        Threads.name,
        Bidiagonal.name,
        Jacobi.name,
    ),
    scratch=scratch,
)


def key_of(backend: Backend, a: Any, job: str) -> GesvdCall:
    """Return the table key; thin and all are one thing where the shapes coincide."""
    m, n = a.shape[-2:]
    vec = "all" if job == "thin" and m == n else job
    return GesvdCall(NAME_OF[a.dtype.char], backend.kind, vec, m, n, a.size // (m * n))


def gesvd(backend: Backend, a: Any, job: str) -> tuple[Any, Any, Any, Any]:
    """Decompose a checked stack.

    Parameters
    ----------
    backend : Backend
        The backend of `a`.
    a : array, shape (..., m, n)
        Not empty, of one of the four LAPACK dtypes.
    job : {"none", "thin", "all"}
        Which vectors to return.

    Returns
    -------
    u : array, shape (..., m, k or m), or None
    s : real array, shape (..., k) with k = min(m, n)
        Descending singular values.
    vh : array, shape (..., k or n, n), or None
    info : int32 array of the batch's shape, or None if no matrix failed
    """

    def launch(choice: select.Family) -> tuple[Any, Any, Any, Any]:
        if choice in GESVD_FAMILIES:
            return launch_gesvd(choice, a, call.vec)
        if isinstance(choice, (Jacobi, Bidiagonal)):
            return _launch_lanes(backend, a, call, choice)
        return adapter_of(backend.kind, choice.name).gesvd(a, call.vec)

    call = key_of(backend, a, job)
    return select.run(SPEC, call, backend.device(a), launch)


def _launch_lanes(
    backend: Backend, a: Any, call: GesvdCall, choice: Jacobi | Bidiagonal
) -> tuple[Any, Any, Any, Any]:
    """Run a kernel into fresh arrays."""
    m, n, k = call.m, call.n, min(call.m, call.n)
    batch, dtype = a.shape[:-2], a.dtype
    s = backend.empty((*batch, k), np.dtype(REAL_OF[dtype.char]), a)
    info = backend.empty(batch, np.dtype(np.int32), a)
    vectors: list[Any] = []
    if call.vec != "none":
        rows, columns = (m, n) if call.vec == "all" else (k, k)
        vectors.append(backend.empty((*batch, m, rows), dtype, a))
        vectors.append(backend.empty((*batch, columns, n), dtype, a))
    arrays = (backend.packed(a), s, *vectors, info)
    failed = _run_kernel(backend, arrays, call, choice)
    u, vh = vectors if vectors else (None, None)
    return u, s, vh, info if failed else None


def _run_kernel(
    backend: Backend,
    arrays: tuple[Any, ...],
    call: GesvdCall,
    choice: Jacobi | Bidiagonal,
) -> bool:
    """Run the kernel of the renderer that the device takes; say if a matrix failed."""
    device, axes = backend.device(arrays[0]), arrays[0].ndim - 2
    rendering = renderer_for(device, _SLOW_DPEX)
    if rendering is not None and rendering.is_noteworthy:
        select.note(rendering)
    if rendering is not None and rendering.renderer == DPEX:
        from batchlas._kernels import singular_dpex

        singular_dpex.gesvd(choice.name, stacked(arrays, axes, call.batch), call.vec)
        return any_failed(backend, arrays[-1])
    with borrowed(backend, arrays[0], scratch(choice, call, device)) as room:
        views = [in_host_memory(backend, array) for array in arrays]
        views = stacked(views, axes, call.batch)
        memory = [in_host_memory(backend, array) for array in room]
        queue = backend.queue(arrays[0])
        return singular.gesvd(choice.name, queue, views, call.vec, choice.width, memory)


def gesvd_hermitian(backend: Backend, a: Any, job: str) -> tuple[Any, Any, Any, Any]:
    """Decompose a checked Hermitian stack through its eigenproblem.

    Singular values are the eigenvalues' sizes, and their signs move into ``vh``. The
    lower triangle is read. Same results as `gesvd`; the choice is syev's.
    """
    xp = backend.xp
    w, v, info = syev(backend, a, "L", vectors=job != "none")
    s = xp.abs(w)
    order = xp.argsort(s, axis=-1)[..., ::-1]
    s = xp.take_along_axis(s, order, axis=-1)
    if v is None:
        return None, s, None, info
    # Not u * sign(w): an eigenvalue of zero would wipe out its row of vh. Not copysign:
    # dpnp 0.20's hung on in-order queues.
    negative = xp.take_along_axis(w, order, axis=-1) < 0
    u = xp.take_along_axis(v, order[..., None, :], axis=-1)
    vh = xp.conj(xp.swapaxes(xp.where(negative[..., None, :], -u, u), -1, -2))
    return u, s, vh, info
