"""svd, svd_ex and svdvals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._dispatch import backend_of
from batchlas._ops.gesvd import gesvd, gesvd_hermitian
from batchlas._ops.quick import quick_gesvd
from batchlas._runtime.dtypes import REAL_OF
from batchlas._runtime.errstate import Failure, settle, status_of
from batchlas.linalg._arguments import Receivers, stack_of
from batchlas.linalg._elsewhere import elsewhere
from batchlas.linalg._results import SVDExResult, SVDResult

if TYPE_CHECKING:
    from batchlas._backends import Backend

_FAILURE = Failure("SVD did not converge", "not converged (info {info})")
_HERMITIAN_FAILURE = _FAILURE._replace(text="Eigenvalues did not converge", part="L")


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
) -> Any:
    """Singular value decomposition of every matrix of a stack.

    Parameters
    ----------
    a : (..., M, N) array_like
        float32, float64, complex64 and complex128 are computed in their own type;
        integers and booleans in float64. The array is never written to.
    full_matrices : bool, optional
        Return square U (..., M, M) and Vh (..., N, N); otherwise (..., M, K) and
        (..., K, N) with K = min(M, N).
    compute_uv : bool, optional
        Return vectors too.
    hermitian : bool, optional
        Take `a` as Hermitian, reading its lower triangle only; faster.

    Returns
    -------
    SVDResult or array
        NumPy's namedtuple ``U``, ``S``, ``Vh`` with ``a = U @ diag(S) @ Vh``, S real,
        (..., K) and descending, of the kind and on the device of `a`; only S without
        `compute_uv`.

    Raises
    ------
    LinAlgError
        If a matrix does not converge or holds NaN or infinity, and ``errstate`` says
        "raise"; ``.indices`` and ``.info`` tell which. Also for fewer than two
        dimensions, or matrices that are not square with `hermitian`.
    TypeError
        For a dtype or an array type that is not computed.

    See Also
    --------
    svdvals : singular values only.
    svd_ex : returns the status of each matrix and never raises for it.

    Notes
    -----
    Each matrix satisfies ``|a - U S Vh| <= c k eps |a|``, and U and Vh are orthonormal
    to ``c k eps``, with k = max(M, N) and a small c. Memory is that of the results and
    O(M N) per matrix besides. An empty stack gives empty results; for M or N of zero
    the square one of U and Vh is the identity.

    References
    ----------
    LAPACK's gesdd. M. Gu, S. C. Eisenstat, A divide-and-conquer algorithm for the
    bidiagonal SVD, SIAM J. Matrix Anal. Appl. 16 (1995) 79-92. Family ``bidiagonal``
    is LAPACK's gesvd: G. H. Golub, C. Reinsch, Singular value decomposition and least
    squares solutions, Numer. Math. 14 (1970) 403-420. Family ``jacobi`` is its
    gesvj: J. Demmel, K. Veselic, Jacobi's method is more accurate than QR, SIAM J.
    Matrix Anal. Appl. 13 (1992) 1204-1245.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> u, s, vh = batchlas.linalg.svd(np.array([[[3.0, 0.0], [0.0, -4.0]]]))
    >>> s
    array([[4., 3.]])
    """
    job = _job(full_matrices=full_matrices, compute_uv=compute_uv)
    results = None if hermitian else quick_gesvd(a, job)
    if results is not None:
        return SVDResult(*results) if compute_uv else results[0]
    backend = backend_of(a)
    if backend is None:
        return elsewhere(
            svd,
            a,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            hermitian=hermitian,
        )
    with backend.turn(a):
        return _svd(backend, a, job, hermitian=hermitian)


def _svd(backend: Backend, a: Any, job: str, *, hermitian: bool) -> Any:
    stack = stack_of(backend, a, square=hermitian)
    u, s, vh, info = _decompose(backend, stack.array, job, hermitian=hermitian)
    failure = _HERMITIAN_FAILURE if hermitian else _FAILURE
    settle(backend, stack.array, (u, s, vh), info, failure)
    if job == "none":
        return stack.values(s)
    return SVDResult(stack.wrapped(u), stack.values(s), stack.wrapped(vh))


def svd_ex(
    a: Any,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    out: Any = None,
    info: Any = None,
) -> SVDExResult:
    """Singular value decomposition and status of every matrix, without raising.

    Parameters
    ----------
    a : (..., M, N) array_like
        As in `svd`.
    full_matrices, compute_uv, hermitian : bool, optional
        As in `svd`.
    out : tuple of three arrays or None, optional
        Receive U, S and Vh, in the caller's memory, on the device of `a`: written in
        place at the end, by a copy, and returned.
    info : (...) array of int32, optional
        Receives the status, in the caller's memory, on the device of `a`; it is
        written in place and returned. Its shape is the batch's.

    Returns
    -------
    SVDExResult
        ``U``, ``S``, ``Vh`` as from `svd` (U and Vh None without `compute_uv`), NaN
        where the matrix failed; and ``info``, (...) of int32 on the same device: 0, or
        positive where the matrix is not finite or did not converge. On a GPU nothing
        is waited for.

    Raises
    ------
    LinAlgError
        For arrays that are not stacks of matrices; never for their values.
    ValueError
        For an `out` or `info` of another shape, dtype or device, or in memory that is
        read-only or overlaps, and for an `out` of what is not computed.
    TypeError
        For a dtype or an array type that is not computed.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> stack = np.stack([np.eye(2), np.full((2, 2), np.inf)])
    >>> batchlas.linalg.svd_ex(stack).info
    array([0, 1], dtype=int32)
    """
    backend = backend_of(a)
    if backend is None:
        Receivers(backend, a, out, info)
        return elsewhere(  # type: ignore[no-any-return]
            svd_ex,
            a,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            hermitian=hermitian,
        )
    job = _job(full_matrices=full_matrices, compute_uv=compute_uv)
    with backend.turn(a):
        return _svd_ex(backend, a, job, out, info, hermitian=hermitian)


def _svd_ex(
    backend: Backend, a: Any, job: str, out: Any, info: Any, *, hermitian: bool
) -> SVDExResult:
    stack = stack_of(backend, a, square=hermitian)
    results = _results(stack.array, job)
    receivers = Receivers(backend, stack.array, out, info, results)
    u, s, vh, status = _decompose(backend, stack.array, job, hermitian=hermitian)
    status = status_of(backend, stack.array, (u, s, vh), status)
    if job != "none":
        u, vh = stack.wrapped(u), stack.wrapped(vh)
    u, s, vh = receivers.received(u, stack.values(s), vh)
    return SVDExResult(u, s, vh, stack.status(backend, status, info))


def svdvals(x: Any, /) -> Any:
    """Singular values of every matrix of a stack.

    Parameters
    ----------
    x : (..., M, N) array_like
        As in `svd`.

    Returns
    -------
    (..., K) array
        Real and descending, K = min(M, N), of the kind and on the device of `x`.

    Raises
    ------
    LinAlgError, TypeError
        As `svd`.

    Notes
    -----
    The error of each value is at most ``c k eps |x|``, k = max(M, N), with a small c.

    References
    ----------
    LAPACK's gesdd without vectors (the dqds method); see `svd` for the native families.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> batchlas.linalg.svdvals(np.array([[3.0, 0.0], [0.0, -4.0]]))
    array([4., 3.])
    """
    results = quick_gesvd(x, "none")
    if results is not None:
        return results[0]
    backend = backend_of(x)
    if backend is None:
        return elsewhere(svdvals, x)
    with backend.turn(x):
        return _svdvals(backend, x)


def _svdvals(backend: Backend, x: Any) -> Any:
    stack = stack_of(backend, x, square=False)
    array = stack.array
    _, s, _, info = _decompose(backend, array, "none", hermitian=False)
    settle(backend, array, (s,), info, _FAILURE)
    return stack.values(s)


def _job(*, full_matrices: bool, compute_uv: bool) -> str:
    if not compute_uv:
        return "none"
    return "all" if full_matrices else "thin"


def _decompose(
    backend: Backend, array: Any, job: str, *, hermitian: bool
) -> tuple[Any, Any, Any, Any]:
    """Run the op, or build the results of a stack without elements."""
    if array.size == 0:
        return (*_empty(backend, array, job), None)
    if hermitian:
        return gesvd_hermitian(backend, array, job)
    return gesvd(backend, array, job)


def _empty(backend: Backend, array: Any, job: str) -> tuple[Any, Any, Any]:
    """Return the results for a stack without elements.

    Either the batch is empty, or M or N is 0 and the square factor of the other side
    is the identity.
    """
    vectors, (shape, _), others = _results(array, job)
    s = backend.xp.empty_like(array.real, shape=shape, order="C")
    if vectors is None or others is None:
        return None, s, None
    u = backend.xp.zeros_like(array, shape=vectors[0], order="C")
    vh = backend.xp.zeros_like(array, shape=others[0], order="C")
    for factor in (u, vh):
        rows, columns = factor.shape[-2:]
        factor.reshape(*factor.shape[:-2], rows * columns)[..., :: columns + 1] = 1
    return u, s, vh


def _results(array: Any, job: str) -> tuple[Any, tuple[tuple[int, ...], Any], Any]:
    """Return shape and dtype of U, S and Vh; None for vectors that are not computed."""
    batch, (m, n) = array.shape[:-2], array.shape[-2:]
    k = min(m, n)
    s = ((*batch, k), np.dtype(REAL_OF[array.dtype.char]))
    if job == "none":
        return None, s, None
    rows, columns = (m, n) if job == "all" else (k, k)
    return ((*batch, m, rows), array.dtype), s, ((*batch, columns, n), array.dtype)
