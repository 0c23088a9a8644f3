"""eigh, eigh_ex and eigvalsh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._dispatch import backend_of
from batchlas._ops.quick import quick_syev
from batchlas._ops.syev import syev
from batchlas._runtime.dtypes import REAL_OF
from batchlas._runtime.errstate import Failure, settle, status_of
from batchlas.linalg._arguments import Receivers, checked_uplo, stack_of
from batchlas.linalg._elsewhere import elsewhere
from batchlas.linalg._results import EighExResult, EighResult

if TYPE_CHECKING:
    from batchlas._backends import Backend

_FAILURE = {
    uplo: Failure("Eigenvalues did not converge", "not converged (info {info})", uplo)
    for uplo in ("L", "U")
}


def eigh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues and eigenvectors of every Hermitian matrix of a stack.

    Parameters
    ----------
    a : (..., N, N) array_like
        Hermitian (symmetric where real) matrices; only one triangle is read, and of a
        complex diagonal only the real part. float32, float64, complex64 and complex128
        are computed in their own type; integers and booleans in float64. The array is
        never written to.
    UPLO : {"L", "U"}, optional
        Which triangle is read; lower case is accepted.

    Returns
    -------
    EighResult
        NumPy's namedtuple: ``eigenvalues``, real, (..., N), ascending; and
        ``eigenvectors``, (..., N, N), orthonormal in columns, of the kind and on the
        device of `a`.

    Raises
    ------
    LinAlgError
        If a matrix does not converge or its read triangle holds NaN or infinity, and
        ``errstate`` says "raise"; ``.indices`` and ``.info`` tell which. Also for
        arrays that are not stacks of square matrices.
    ValueError
        For any other `UPLO`.
    TypeError
        For a dtype or an array type that is not computed.

    See Also
    --------
    eigvalsh : eigenvalues only.
    eigh_ex : returns the status of each matrix and never raises for it.

    Notes
    -----
    Each matrix satisfies ``|a v - v w| <= c n eps |a|`` and ``|v^H v - 1| <= c n eps``
    with a small c. The cost is about 9 n^3 operations per matrix. Vectors are unique
    only up to a phase, and to a rotation where eigenvalues coincide. An empty stack
    gives empty results.

    References
    ----------
    LAPACK's syevd and heevd. G. H. Golub, C. F. Van Loan, Matrix Computations, 4th
    ed., Johns Hopkins, 2013, chapter 8.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> w, v = batchlas.linalg.eigh(np.array([[[2.0, 1.0], [1.0, 2.0]]]))
    >>> w.round(12)
    array([[1., 3.]])
    """
    results = quick_syev(a, f"V{UPLO}") if _is_exact(UPLO) else None
    if results is not None:
        return EighResult(*results)
    backend = backend_of(a)
    if backend is None:
        return elsewhere(eigh, a, UPLO=UPLO)
    uplo = checked_uplo(UPLO)
    with backend.turn(a):
        return _eigh(backend, a, uplo)


def _eigh(backend: Backend, a: Any, uplo: str) -> Any:
    stack = stack_of(backend, a)
    array = stack.array
    if array.size == 0:
        w, v = _empty(backend, array)
    else:
        w, v, info = syev(backend, array, uplo, vectors=True)
        settle(backend, array, (w, v), info, _FAILURE[uplo])
    return EighResult(stack.values(w), stack.wrapped(v))


def eigh_ex(
    a: Any, UPLO: str = "L", *, out: Any = None, info: Any = None
) -> EighExResult:
    """Eigenvalues, eigenvectors and status of every matrix, without raising.

    Parameters
    ----------
    a : (..., N, N) array_like
        As in `eigh`.
    UPLO : {"L", "U"}, optional
        As in `eigh`.
    out : tuple of two arrays or None, optional
        Receive eigenvalues and eigenvectors, in the caller's memory, on the device of
        `a`: written in place at the end, by a copy, and returned.
    info : (...) array of int32, optional
        Receives the status, in the caller's memory, on the device of `a`; it is
        written in place and returned. Its shape is the batch's.

    Returns
    -------
    EighExResult
        ``eigenvalues`` and ``eigenvectors`` as from `eigh`, NaN where the matrix
        failed; and ``info``, (...) of int32 on the same device: 0, or positive where
        the matrix is not finite or did not converge. On a GPU nothing is waited for.

    Raises
    ------
    LinAlgError
        For arrays that are not stacks of square matrices; never for their values.
    ValueError
        For an `UPLO` other than L or U; for an `out` or `info` of another shape, dtype
        or device, or in memory that is read-only or overlaps.
    TypeError
        For a dtype or an array type that is not computed.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> stack = np.stack([np.eye(2), np.full((2, 2), np.nan)])
    >>> batchlas.linalg.eigh_ex(stack).info
    array([0, 1], dtype=int32)
    """
    backend = backend_of(a)
    if backend is None:
        Receivers(backend, a, out, info)
        return elsewhere(eigh_ex, a, UPLO=UPLO)  # type: ignore[no-any-return]
    uplo = checked_uplo(UPLO)
    with backend.turn(a):
        return _eigh_ex(backend, a, uplo, out, info)


def _eigh_ex(backend: Backend, a: Any, uplo: str, out: Any, info: Any) -> EighExResult:
    stack = stack_of(backend, a)
    array = stack.array
    values = (array.shape[:-1], np.dtype(REAL_OF[array.dtype.char]))
    results = [values, (array.shape, array.dtype)]
    receivers = Receivers(backend, array, out, info, results)
    if array.size == 0:
        w, v, status = *_empty(backend, array), None
    else:
        w, v, status = syev(backend, array, uplo, vectors=True)
    status = stack.status(backend, status_of(backend, array, (w, v), status), info)
    w, v = receivers.received(stack.values(w), stack.wrapped(v))
    return EighExResult(w, v, status)


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """Eigenvalues of every Hermitian matrix of a stack.

    Parameters
    ----------
    a : (..., N, N) array_like
        As in `eigh`.
    UPLO : {"L", "U"}, optional
        As in `eigh`.

    Returns
    -------
    (..., N) array
        Real and ascending, of the kind and on the device of `a`.

    Raises
    ------
    LinAlgError, ValueError, TypeError
        As `eigh`.

    Notes
    -----
    The error of each eigenvalue is at most ``c n eps |a|`` with a small c. The cost is
    4 n^3 / 3 operations per matrix, several times less than with vectors.

    References
    ----------
    LAPACK's syevd and heevd without vectors (the root-free QL method, sterf).

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> batchlas.linalg.eigvalsh(np.array([[2.0, 1.0], [1.0, 2.0]])).round(12)
    array([1., 3.])
    """
    results = quick_syev(a, f"N{UPLO}") if _is_exact(UPLO) else None
    if results is not None:
        return results[0]
    backend = backend_of(a)
    if backend is None:
        return elsewhere(eigvalsh, a, UPLO=UPLO)
    uplo = checked_uplo(UPLO)
    with backend.turn(a):
        return _eigvalsh(backend, a, uplo)


def _eigvalsh(backend: Backend, a: Any, uplo: str) -> Any:
    stack = stack_of(backend, a)
    array = stack.array
    if array.size == 0:
        return stack.values(_empty(backend, array)[0])
    w, _, info = syev(backend, array, uplo, vectors=False)
    settle(backend, array, (w,), info, _FAILURE[uplo])
    return stack.values(w)


def _is_exact(uplo: object) -> bool:
    """Whether `uplo` needs no check."""
    return type(uplo) is str and uplo in ("L", "U")


def _empty(backend: Backend, array: Any) -> tuple[Any, Any]:
    """Return eigh's results for a stack without elements."""
    v = backend.xp.empty_like(array, order="C")
    return v.real[..., 0] if array.shape[-1] else v.real.reshape(array.shape[:-1]), v
