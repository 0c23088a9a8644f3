"""LAPACK through NumPy, for NumPy arrays: the family ``vendor``.

NumPy's public functions raise for the whole stack as soon as one matrix fails, and lose
the results. Its generalised ufuncs under them mark a failed matrix with NaN and raise
the floating-point flag "invalid" instead, so these are what is called here. The types
are NumPy's: single precision is computed in double and rounded at the end.

With ``threads=True`` the batch is cut into slices; `batchlas._vendor.lapack_threads`
offers that as the family ``threads``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.linalg import _umath_linalg

from batchlas._runtime.dtypes import REAL_OF
from batchlas._runtime.health import check_host_blas
from batchlas._runtime.info import from_flags
from batchlas._vendor.screen import first_bad_minor, non_finite, with_identity
from batchlas._vendor.slices import over_batch

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# By name, since NumPy 1 and NumPy 2 do not have the same ones.
_GUFUNCS: dict[str, Callable[..., Any]] = vars(_umath_linalg)


# Results of each routine, by NumPy's letters: t is the array's own type, r its real.
_SIGNATURES = {
    "t": {"d": "d->d", "D": "D->D"},
    "r": {"d": "d->d", "D": "D->d"},
    "rt": {"d": "d->dd", "D": "D->dD"},
    "trt": {"d": "d->ddd", "D": "D->DdD"},
}


def routine(
    op: str, option: str, shape: tuple[int, ...], char: str
) -> tuple[Callable[..., Any], str, str]:
    """Return a gufunc, the letters of its results, and its loop for a dtype.

    Parameters
    ----------
    op : {"potrf", "syev", "gesvd"}
    option : str
        The triangle of potrf; of syev with V before it, or N for eigenvalues alone;
        the job of gesvd.
    shape : (int, int)
        Of the matrices.
    char : str
        The dtype.
    """
    if op == "potrf":
        gufunc, letters = _cholesky(option), "t"
    elif op == "syev":
        name, letters = ("eigh", "rt") if option[0] == "V" else ("eigvalsh", "r")
        gufunc = _GUFUNCS[f"{name}_{'lo' if option[1] == 'L' else 'up'}"]
    else:
        letters = "r" if option == "none" else "trt"
        gufunc = _svd(option, *shape)
    return gufunc, letters, _SIGNATURES[letters]["D" if char in "FD" else "d"]


def potrf(
    a: NDArray[Any], uplo: str, *, threads: bool = False
) -> tuple[NDArray[Any], NDArray[np.int32] | None]:
    """Cholesky factors; see `batchlas._vendor`."""
    failed = non_finite(a, uplo)
    clean = a if failed is None else with_identity(a, failed)
    (factor,), broke = _call("potrf", uplo, clean, (a.shape,), threads)
    # OpenBLAS takes a pivot of NaN, which overflow can leave, for a good one. Whatever
    # NaN there is reaches the last pivot.
    last = factor[..., -1, -1].real
    if failed is None and not broke and not math.isnan(last.sum()):
        return factor, None
    bad = np.isnan(last)
    if failed is not None:
        factor[failed] = np.nan
        bad |= failed
    info = np.zeros(a.shape[:-2], np.int32)
    info[bad] = first_bad_minor(a[bad], uplo)
    return factor, info


def syev(
    a: NDArray[Any], uplo: str, *, vectors: bool, threads: bool = False
) -> tuple[NDArray[Any], NDArray[Any] | None, NDArray[np.int32] | None]:
    """Eigenvalues and eigenvectors; see `batchlas._vendor`."""
    failed = non_finite(a, uplo)
    clean = a if failed is None else with_identity(a, failed)
    shapes = (a.shape[:-1], a.shape)[: 1 + vectors]
    option = f"{'V' if vectors else 'N'}{uplo}"
    outputs, broke = _call("syev", option, clean, shapes, threads)
    info = _mark(outputs, outputs[0][..., 0], failed, broke)
    return outputs[0], outputs[1] if vectors else None, info


def gesvd(
    a: NDArray[Any], job: str, *, threads: bool = False
) -> tuple[
    NDArray[Any] | None, NDArray[Any], NDArray[Any] | None, NDArray[np.int32] | None
]:
    """Singular values and vectors; see `batchlas._vendor`."""
    failed = non_finite(a, "A")
    clean = a if failed is None else with_identity(a, failed)
    batch, (m, n) = a.shape[:-2], a.shape[-2:]
    k = min(m, n)
    if job == "none":
        (s,), broke = _call("gesvd", job, clean, ((*batch, k),), threads)
        return None, s, None, _mark((s,), s[..., 0], failed, broke)
    rows, columns = (m, n) if job == "all" else (k, k)
    shapes = ((*batch, m, rows), (*batch, k), (*batch, columns, n))
    (u, s, vh), broke = _call("gesvd", job, clean, shapes, threads)
    return u, s, vh, _mark((u, s, vh), s[..., 0], failed, broke)


def _cholesky(uplo: str) -> Callable[..., Any]:
    if uplo == "L":
        return _GUFUNCS["cholesky_lo"]
    return _GUFUNCS.get("cholesky_up", _cholesky_up)


def _cholesky_up(a: NDArray[Any], *, out: tuple[NDArray[Any]], signature: str) -> None:
    """Upper Cholesky by way of the lower one, for NumPy 1."""
    lower = _GUFUNCS["cholesky_lo"](a.swapaxes(-1, -2).conj(), signature=signature)
    out[0][...] = lower.swapaxes(-1, -2).conj()


def _svd(job: str, m: int, n: int) -> Callable[..., Any]:
    suffix = {"none": "", "thin": "_s", "all": "_f"}[job]
    numpy1 = "svd_m" if m < n else "svd_n"
    return _GUFUNCS[("svd" if "svd" in _GUFUNCS else numpy1) + suffix]


def _call(
    op: str,
    option: str,
    a: NDArray[Any],
    shapes: tuple[tuple[int, ...], ...],
    threads: bool,
) -> tuple[tuple[NDArray[Any], ...], bool]:
    """Run a routine into fresh arrays; also say whether some matrix failed."""
    check_host_blas()
    char = a.dtype.char
    gufunc, letters, signature = routine(op, option, a.shape[-2:], char)
    outputs = tuple(
        np.empty(shape, char if letter == "t" else REAL_OF[char])
        for letter, shape in zip(letters, shapes, strict=True)
    )
    if threads:
        return outputs, over_batch(_slice, gufunc, signature, a, outputs)
    return outputs, _slice(gufunc, signature, a, outputs)


def _slice(
    gufunc: Callable[..., Any],
    signature: str,
    a: NDArray[Any],
    outputs: tuple[NDArray[Any], ...],
) -> bool:
    """Run a gufunc over `a`; True when NumPy reported a failed matrix."""
    failures: list[str] = []

    def report(error: str, _flag: int) -> None:
        failures.append(error)

    with np.errstate(
        call=report, invalid="call", over="ignore", divide="ignore", under="ignore"
    ):
        gufunc(a, out=outputs, signature=signature)
    return bool(failures)


def _mark(
    outputs: tuple[NDArray[Any], ...],
    probe: NDArray[Any],
    failed: NDArray[np.bool_] | None,
    broke: bool,
) -> NDArray[np.int32] | None:
    """Return info from NumPy's NaN marks, and write NaN for screened matrices."""
    if failed is None and not broke:
        return None
    bad: NDArray[np.bool_] = np.isnan(probe)
    if failed is not None:
        for output in outputs:
            output[failed] = np.nan
        bad = bad | failed
    return from_flags(bad)
