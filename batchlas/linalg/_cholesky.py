"""cholesky and cholesky_ex."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batchlas._dispatch import backend_of
from batchlas._ops.potrf import potrf
from batchlas._ops.quick import quick_potrf
from batchlas._runtime.errstate import Failure, settle, status_of
from batchlas.linalg._arguments import Receivers, stack_of
from batchlas.linalg._elsewhere import elsewhere
from batchlas.linalg._results import CholeskyExResult

if TYPE_CHECKING:
    from batchlas._backends import Backend

_FAILURE = {
    uplo: Failure(
        "Matrix is not positive definite",
        "leading minor of order {info} is not positive definite",
        uplo,
    )
    for uplo in ("L", "U")
}


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    r"""Cholesky factor of every matrix of a stack.

    Parameters
    ----------
    a : (..., N, N) array_like
        Hermitian (symmetric where real) positive definite matrices. Only the lower
        triangle is read, or the upper one with `upper`. float32, float64, complex64
        and complex128 are computed in their own type; integers and booleans in
        float64. The array is never written to.
    upper : bool, optional
        Return the upper factor U with ``a = U.conj().T @ U`` instead of the lower
        factor L with ``a = L @ L.conj().T``.

    Returns
    -------
    (..., N, N) array
        The factors, C-contiguous, of the kind and on the device of `a`; the other
        triangle is zero. Subclasses of ndarray are kept as numpy.linalg keeps them.

    Raises
    ------
    LinAlgError
        If a matrix is not positive definite or its read triangle holds NaN or
        infinity, and ``errstate`` says "raise"; ``.indices`` and ``.info`` tell which.
        Also for arrays that are not stacks of square matrices.
    TypeError
        For a dtype or an array type that is not computed.

    See Also
    --------
    cholesky_ex : returns the status of each matrix and never raises for it.

    Notes
    -----
    The factor of each matrix satisfies ``|a - L L^H| <= c n eps |a|`` with a small c.
    The cost is n^3 / 3 operations per matrix. ``info`` is the order of the first
    leading minor that is not positive definite. An empty stack gives an empty result.

    References
    ----------
    LAPACK's potrf. N. J. Higham, Accuracy and Stability of Numerical Algorithms,
    2nd ed., SIAM, 2002, chapter 10.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> stack = np.array([[[4.0, 2.0], [2.0, 5.0]], [[9.0, 3.0], [3.0, 2.0]]])
    >>> batchlas.linalg.cholesky(stack)
    array([[[2., 0.],
            [1., 2.]],
    <BLANKLINE>
           [[3., 0.],
            [1., 1.]]])
    """
    uplo = "U" if upper else "L"
    results = quick_potrf(a, uplo)
    if results is not None:
        return results[0]
    backend = backend_of(a)
    if backend is None:
        return elsewhere(cholesky, a, upper=upper)
    with backend.turn(a):
        return _cholesky(backend, a, uplo)


def _cholesky(backend: Backend, a: Any, uplo: str) -> Any:
    stack = stack_of(backend, a)
    array = stack.array
    if array.size == 0:
        return stack.wrapped(backend.xp.empty_like(array, order="C"))
    factor, info = potrf(backend, array, uplo)
    settle(backend, array, (factor,), info, _FAILURE[uplo])
    return stack.wrapped(factor)


def cholesky_ex(
    a: Any, /, *, upper: bool = False, out: Any = None, info: Any = None
) -> CholeskyExResult:
    """Cholesky factor and status of every matrix of a stack, without raising.

    Parameters
    ----------
    a : (..., N, N) array_like
        As in `cholesky`.
    upper : bool, optional
        As in `cholesky`.
    out : (..., N, N) array, optional
        Receives the factor, in the caller's memory, on the device of `a`: written in
        place at the end, by a copy, and returned. Its dtype is the result's.
    info : (...) array of int32, optional
        Receives the status, in the caller's memory, on the device of `a`; it is
        written in place and returned. Its shape is the batch's.

    Returns
    -------
    CholeskyExResult
        ``factor``, (..., N, N), NaN where the matrix failed; and ``info``, (...) of
        int32 on the same device: 0, or the order of the first leading minor that is
        not positive definite or not finite. On a GPU nothing is waited for.

    Raises
    ------
    LinAlgError
        For arrays that are not stacks of square matrices; never for their values.
    ValueError
        For an `out` or `info` of another shape, dtype or device, or in memory that is
        read-only or overlaps.
    TypeError
        For a dtype or an array type that is not computed.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> stack = np.stack([np.eye(2), np.diag([1.0, -1.0])])
    >>> batchlas.linalg.cholesky_ex(stack).info
    array([0, 2], dtype=int32)
    """
    backend = backend_of(a)
    if backend is None:
        Receivers(backend, a, out, info)
        return elsewhere(cholesky_ex, a, upper=upper)  # type: ignore[no-any-return]
    with backend.turn(a):
        return _cholesky_ex(backend, a, "U" if upper else "L", out, info)


def _cholesky_ex(
    backend: Backend, a: Any, uplo: str, out: Any, info: Any
) -> CholeskyExResult:
    stack = stack_of(backend, a)
    array = stack.array
    receivers = Receivers(backend, array, out, info, [(array.shape, array.dtype)])
    if array.size == 0:
        factor, status = backend.xp.empty_like(array, order="C"), None
    else:
        factor, status = potrf(backend, array, uplo)
    status = status_of(backend, array, (factor,), status)
    (factor,) = receivers.received(stack.wrapped(factor))
    return CholeskyExResult(factor, stack.status(backend, status, info))
