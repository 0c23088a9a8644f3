"""gesvd, the singular value decomposition: the decision what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from batchlas import _select as select
from batchlas._ops.cuda import GESVD_FAMILIES, GESVD_ORDER, can_run_gesvd, launch_gesvd
from batchlas._ops.families import Threads, Vendor, can_run_library, library_families
from batchlas._ops.syev import syev
from batchlas._runtime.dtypes import NAME_OF
from batchlas._vendor import adapter_of

if TYPE_CHECKING:
    from batchlas._backends import Backend
    from batchlas._runtime.devices import Device


class GesvdCall(NamedTuple):
    """What a choice may depend on; ``vec`` is none, thin or all."""

    dtype: str
    array: str
    vec: str
    m: int
    n: int
    batch: int


def candidates(dtype: str, kind: str) -> tuple[select.Family, ...]:
    """Return every choice."""
    native = GESVD_FAMILIES if kind == "cupy" else ()
    return (*native, *library_families(dtype, kind))


def can_run(choice: select.Family, call: GesvdCall, device: Device) -> bool:
    """Whether a choice would decompose this call rightly."""
    if choice in GESVD_FAMILIES:
        return can_run_gesvd(choice, call, device)
    return can_run_library(choice, call, device)


SPEC = select.OpSpec(
    op="gesvd",
    library="lapack",
    keys=GesvdCall._fields,
    candidates=candidates,
    can_run=can_run,
    last_resort=(*GESVD_ORDER, Vendor.name, Threads.name),
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
        return adapter_of(backend.kind, choice.name).gesvd(a, call.vec)

    call = key_of(backend, a, job)
    return select.run(SPEC, call, backend.device(a), launch)


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
