"""potrf, the Cholesky factorisation: the decision what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from batchlas import _select as select
from batchlas._ops.families import Threads, Vendor, can_run, library_families
from batchlas._runtime.dtypes import NAME_OF
from batchlas._vendor import adapter_of

if TYPE_CHECKING:
    from batchlas._backends import Backend


class PotrfCall(NamedTuple):
    """What a choice may depend on."""

    dtype: str
    array: str
    uplo: str
    n: int
    batch: int


SPEC = select.OpSpec(
    op="potrf",
    library="lapack",
    keys=PotrfCall._fields,
    candidates=library_families,
    can_run=can_run,
    last_resort=(Vendor.name, Threads.name),
)


def key_of(backend: Backend, a: Any, uplo: str) -> PotrfCall:
    """Return the table key of a call on ``a``, of shape ``(..., n, n)``."""
    n = a.shape[-1]
    return PotrfCall(NAME_OF[a.dtype.char], backend.kind, uplo, n, a.size // (n * n))


def potrf(backend: Backend, a: Any, uplo: str) -> tuple[Any, Any]:
    """Factor a checked stack.

    Parameters
    ----------
    backend : Backend
        The backend of `a`.
    a : array, shape (..., n, n)
        Not empty, of one of the four LAPACK dtypes; only triangle `uplo` is read.
    uplo : {"L", "U"}

    Returns
    -------
    factor : array, shape (..., n, n)
        Triangular, its other triangle zero.
    info : int32 array of the batch's shape, or None if no matrix failed
    """

    def launch(choice: select.Family) -> tuple[Any, Any]:
        return adapter_of(backend.kind, choice.name).potrf(a, uplo)

    call = key_of(backend, a, uplo)
    return select.run(SPEC, call, backend.device(a), launch)
