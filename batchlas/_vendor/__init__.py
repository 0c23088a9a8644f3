"""The vendors' routines, one adapter per library, all with the same three functions.

``potrf(a, uplo)``, ``syev(a, uplo, vectors=)`` and ``gesvd(a, job)`` return the results
and then ``info``: an int32 array of the batch's shape beside the data, or None when
every matrix is known to have succeeded. They are never given a matrix order or a batch
of zero. A matrix whose read triangle holds NaN or infinity never reaches the library:
its results are NaN and its info is positive.
"""

from __future__ import annotations

import importlib
from typing import Any, Protocol, cast


class Vendor(Protocol):
    """What a vendor adapter offers; see the module's text."""

    def potrf(self, a: Any, uplo: str) -> tuple[Any, Any]:
        """Return the Cholesky factor, its other triangle zero, and info."""

    def syev(self, a: Any, uplo: str, *, vectors: bool) -> tuple[Any, Any, Any]:
        """Return ascending eigenvalues, eigenvectors or None, and info."""

    def gesvd(self, a: Any, job: str) -> tuple[Any, Any, Any, Any]:
        """Return u, descending s, vh (None for job "none") and info."""


# Which module serves a family on a kind of array; each imports its library.
_ADAPTERS = {
    ("numpy", "vendor"): "lapack",
    ("numpy", "threads"): "lapack_threads",
    ("dpnp", "vendor"): "onemkl",
    ("cupy", "vendor"): "cusolver",
}
_loaded: dict[tuple[str, str], Vendor] = {}


def adapter_of(kind: str, family: str) -> Vendor:
    """Return the adapter that serves `family` on arrays of `kind`."""
    key = kind, family
    try:
        return _loaded[key]
    except KeyError:
        adapter = importlib.import_module(f"batchlas._vendor.{_ADAPTERS[key]}")
        return _loaded.setdefault(key, cast("Vendor", adapter))
