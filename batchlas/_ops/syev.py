"""syev, the symmetric or Hermitian eigenproblem: the decision what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from batchlas import _select as select
from batchlas._ops.cuda import SYEV_FAMILIES, SYEV_ORDER, can_run_syev, launch_syev
from batchlas._ops.families import Threads, Vendor, can_run_library, library_families
from batchlas._runtime.dtypes import NAME_OF
from batchlas._vendor import adapter_of

if TYPE_CHECKING:
    from batchlas._backends import Backend
    from batchlas._runtime.devices import Device


class SyevCall(NamedTuple):
    """What a choice may depend on; uplo never changes a ranking."""

    dtype: str
    array: str
    jobz: str
    n: int
    batch: int


def candidates(dtype: str, kind: str) -> tuple[select.Family, ...]:
    """Return every choice."""
    native = SYEV_FAMILIES if kind == "cupy" else ()
    return (*native, *library_families(dtype, kind))


def can_run(choice: select.Family, call: SyevCall, device: Device) -> bool:
    """Whether a choice would solve this call rightly."""
    if choice in SYEV_FAMILIES:
        return can_run_syev(choice, call, device)
    return can_run_library(choice, call, device)


SPEC = select.OpSpec(
    op="syev",
    library="lapack",
    keys=SyevCall._fields,
    candidates=candidates,
    can_run=can_run,
    last_resort=(*SYEV_ORDER, Vendor.name, Threads.name),
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
        return adapter_of(backend.kind, choice.name).syev(a, uplo, vectors=vectors)

    call = key_of(backend, a, vectors=vectors)
    return select.run(SPEC, call, backend.device(a), launch)
