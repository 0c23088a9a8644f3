"""oneMKL through dpnp.linalg, for dpnp arrays: the family ``vendor``.

dpnp raises for the whole stack when one matrix fails and returns nothing. A stack that
failed is therefore run again with the identity in place of the matrices that Cholesky
shows to be bad, and, should it fail still, by halves until each bad matrix is alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import dpnp
import numpy as np

# Taken by name: batchlas.install() may replace them in dpnp.linalg later.
from dpnp.linalg import LinAlgError, cholesky, eigh, eigvalsh, svd

from batchlas._backends.dpnp import host_view, to_host
from batchlas._runtime.info import from_flags
from batchlas._runtime.settings import settings
from batchlas._vendor.screen import first_bad_minor, non_finite, with_identity

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_Outputs = tuple[Any, ...]

# dpnp 0.15, the release that numba-dpex needs, ignores the status of a stack's Cholesky
# factors, and the svd of a stack frees memory that the runtime does not know any more:
# after some hundred calls the process ends ("Native API returns: -30"). One matrix at a
# time it does not.
_IS_DPNP_0_15 = dpnp.__version__.startswith("0.15.")


def potrf(a: Any, uplo: str) -> tuple[Any, Any]:
    """Cholesky factors; see `batchlas._vendor`."""

    def factor(stack: Any) -> _Outputs:
        result = cholesky(stack, upper=uplo == "U")
        if _IS_DPNP_0_15 and not _has_positive_diagonals(result):
            message = "Matrix is not positive definite"
            raise LinAlgError(message)
        return (result,)

    failed = _non_finite(a, uplo)
    try:
        (result,) = factor(_cleaned(a, failed))
    except (LinAlgError, RuntimeError) as error:
        _reraise_unless_numeric(error)
        failed = _not_positive_definite(a, uplo)
        (result,), failed = _isolate(factor, a, failed)
    if failed is None:
        return result, None
    info = np.zeros(a.shape[:-2], np.int32)
    info[failed] = first_bad_minor(to_host(a)[failed], uplo)
    return _with_status(a, (result,), info)


def syev(a: Any, uplo: str, *, vectors: bool) -> tuple[Any, Any, Any]:
    """Eigenvalues and eigenvectors; see `batchlas._vendor`."""

    def solve(stack: Any) -> _Outputs:
        if vectors:
            return tuple(eigh(stack, UPLO=uplo))
        return (eigvalsh(stack, UPLO=uplo),)

    outputs, info = _run(solve, a, _non_finite(a, uplo))
    return outputs[0], outputs[1] if vectors else None, info


def gesvd(a: Any, job: str) -> tuple[Any, Any, Any, Any]:
    """Singular values and vectors; see `batchlas._vendor`."""

    def decompose(stack: Any) -> _Outputs:
        outputs = _svd(stack, job)
        s = outputs[0 if job == "none" else 1]
        scales = _scales_near_underflow(s)
        if scales is None:
            return outputs
        scale = dpnp.asarray(scales, sycl_queue=s.sycl_queue)
        outputs = _svd(stack * scale[..., None, None], job)
        if job == "none":
            return (outputs[0] / scale[..., None],)
        return outputs[0], outputs[1] / scale[..., None], outputs[2]

    outputs, info = _run(decompose, a, _non_finite(a, "A"))
    if job == "none":
        return None, outputs[0], None, info
    u, s, vh = outputs
    return u, s, vh, info


def _svd(stack: Any, job: str) -> _Outputs:
    if _IS_DPNP_0_15 and stack.ndim > 2:
        return _one_at_a_time(stack, job)
    if job == "none":
        return (svd(stack, compute_uv=False),)
    return tuple(svd(stack, full_matrices=job == "all"))


def _one_at_a_time(stack: Any, job: str) -> _Outputs:
    """Decompose a stack matrix by matrix."""
    matrices = stack.reshape(-1, *stack.shape[-2:])
    parts = zip(*(_svd(matrix, job) for matrix in matrices), strict=True)
    batch = stack.shape[:-2]
    return tuple(dpnp.stack(part).reshape(*batch, *part[0].shape) for part in parts)


def _scales_near_underflow(s: Any) -> NDArray[Any] | None:
    """Return a factor per matrix, None where all are 1.

    oneMKL does not scale: it drops what is small beside the smallest normal number, so
    that a float64 matrix of norm 1e-299 kept 10 digits. Powers of two scale exactly.
    """
    view = host_view(s)
    largest = (to_host(s) if view is None else view)[..., 0]
    limits = np.finfo(largest.dtype)
    tiny = (largest < limits.tiny / limits.eps**3) & (largest > 0)
    if not tiny.any():
        return None
    return np.where(tiny, limits.eps**-4, 1.0).astype(largest.dtype)


def _run(
    routine: Callable[[Any], _Outputs], a: Any, failed: NDArray[np.bool_] | None
) -> tuple[_Outputs, Any]:
    """Run a routine whose failures have no count; info is 0 or 1."""
    try:
        outputs = routine(_cleaned(a, failed))
    except (LinAlgError, RuntimeError) as error:
        _reraise_unless_numeric(error)
        outputs, failed = _isolate(routine, a, failed)
    if failed is None:
        return outputs, None
    *filled, info = _with_status(a, outputs, from_flags(failed))
    return tuple(filled), info


def _reraise_unless_numeric(error: Exception) -> None:
    """Let errors of the device or of memory pass: they say nothing of a matrix."""
    numeric = isinstance(error, LinAlgError)
    if not numeric and "computation error" not in str(error):
        raise error


def _has_positive_diagonals(factor: Any) -> bool:
    """Whether Cholesky came to its end: it leaves the pivot that stopped it."""
    diagonals = np.diagonal(to_host(factor), axis1=-2, axis2=-1)
    return bool((diagonals.real > 0).all())


def _non_finite(a: Any, part: str) -> NDArray[np.bool_] | None:
    """Return which matrices are not finite where they are read, or None.

    On a CPU device the values are looked at in place; elsewhere the device says first
    whether there is anything to look for.
    """
    view = host_view(a)
    if view is None:
        if settings().skip_finite_check or bool(dpnp.all(dpnp.isfinite(a))):
            return None
        view = to_host(a)
    return non_finite(view, part)


def _not_positive_definite(a: Any, uplo: str) -> NDArray[np.bool_]:
    """Return which matrices NumPy's Cholesky cannot factor."""
    from batchlas._vendor import lapack

    _, info = lapack.potrf(to_host(a), uplo)
    return np.zeros(a.shape[:-2], bool) if info is None else info > 0


def _cleaned(a: Any, failed: NDArray[np.bool_] | None) -> Any:
    """Return `a` itself, or a copy with the identity for failed matrices."""
    if failed is None:
        return a
    clean = with_identity(to_host(a), failed)
    return dpnp.asarray(clean, sycl_queue=a.sycl_queue, usm_type=a.usm_type)


def _isolate(
    routine: Callable[[Any], _Outputs], a: Any, failed: NDArray[np.bool_] | None
) -> tuple[_Outputs, NDArray[np.bool_]]:
    """Find by halving which matrices a routine fails on; return results and marks."""
    bad = np.zeros(a.shape[:-2], bool) if failed is None else failed.copy()
    flags = bad.reshape(-1)
    stack = _cleaned(a, bad).reshape(-1, *a.shape[-2:])
    pending = [(0, len(flags))]
    while pending:
        start, stop = pending.pop()
        try:
            routine(stack[start:stop])
        except (LinAlgError, RuntimeError) as error:
            _reraise_unless_numeric(error)
            if stop - start == 1:
                flags[start] = True
            else:
                middle = (start + stop) // 2
                pending += [(start, middle), (middle, stop)]
    return routine(_cleaned(a, bad)), bad


def _with_status(a: Any, outputs: _Outputs, info: NDArray[np.int32]) -> _Outputs:
    """Return outputs with NaN for failed matrices, then info beside the data."""
    status = dpnp.asarray(info, sycl_queue=a.sycl_queue)
    failed = status > 0
    filled = []
    for output in outputs:
        shape = failed.shape + (1,) * (output.ndim - failed.ndim)
        filled.append(dpnp.where(failed.reshape(shape), dpnp.nan, output))
    return (*(f.astype(o.dtype) for f, o in zip(filled, outputs, strict=True)), status)
