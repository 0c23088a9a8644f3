"""What happens when some matrices of a stack fail: raise, NaN, or nothing.

Decided here: the policy in force (a context variable, so that threads and tasks do not
see each other's) and how a status array becomes a LinAlgError or NaN.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from batchlas._runtime.state import process_wide
from batchlas.exceptions import LinAlgError

if TYPE_CHECKING:
    from batchlas._backends import Backend

POLICIES = ("raise", "nan", "ignore")
# A message lists this many matrices; `.indices` always has them all.
_LISTED = 8

# The policies of the open blocks, innermost last.
_policies: ContextVar[tuple[str, ...]] = process_wide(
    "policies", lambda: ContextVar("batchlas_policies", default=("raise",))
)


class errstate(ContextDecorator):  # noqa: N801 - named like numpy.errstate
    """Choose what a failed factorisation does, for a ``with`` block or a function.

    Parameters
    ----------
    linalg : {"raise", "nan", "ignore"}
        "raise" raises `LinAlgError` naming the matrices that failed. "nan" fills the
        results of those matrices with NaN. "ignore" leaves in them whatever the
        algorithm left (NaN or a partial result) and never waits for a GPU.

    Raises
    ------
    ValueError
        For any other word.

    Notes
    -----
    Blocks nest, and each thread and each asyncio task has its own state. One object
    may be entered several times. The results of matrices that did not fail are the
    same under all three.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> stack = np.stack([np.eye(2), -np.eye(2)])
    >>> with batchlas.errstate(linalg="nan"):
    ...     batchlas.linalg.cholesky(stack)[1, 0, 0]
    np.float64(nan)
    """

    def __init__(self, *, linalg: str) -> None:
        if linalg not in POLICIES:
            message = f"errstate(linalg={linalg!r}); allowed: {', '.join(POLICIES)}"
            raise ValueError(message)
        self._linalg = linalg

    def __repr__(self) -> str:
        return f"errstate(linalg={self._linalg!r})"

    def __enter__(self) -> errstate:
        _policies.set((*_policies.get(), self._linalg))
        return self

    def __exit__(self, *_exc: object) -> None:
        _policies.set(_policies.get()[:-1])


def policy() -> str:
    """Return the policy in force."""
    return _policies.get()[-1]


class Failure(NamedTuple):
    """How an op's failure is told: NumPy's text, and what one status means.

    ``part`` is what the op reads of a matrix: triangle L or U, or all of it (A).
    """

    text: str
    status: str
    part: str = "A"


def settle(
    backend: Backend, a: Any, outputs: tuple[Any, ...], info: Any, failure: Failure
) -> None:
    """Apply the policy in force to one call's results, in place.

    Parameters
    ----------
    backend : Backend
        Where the arrays live.
    a : array
        The input stack, read only to say which failed matrices are not finite.
    outputs : tuple of array or None
        The results, batch axes first.
    info : array of int32 or None
        Status per matrix; None when every matrix is known to have succeeded.
    failure : Failure
        What to say; ``{info}`` in its status stands for a matrix's info.
    """
    if info is None:
        return
    if policy() == "nan":
        fill_failed(backend, outputs, info)
    elif policy() == "raise" and bool(info.any()):  # one number crosses, not all
        raise _failure(backend, a, backend.to_host(info), failure)


def status_of(backend: Backend, a: Any, outputs: tuple[Any, ...], info: Any) -> Any:
    """Return the status of every matrix, after filling failed results with NaN.

    What the ``*_ex`` functions do with an op's info, whatever the policy in force.
    """
    if info is None:
        return backend.zeros_info(a)
    fill_failed(backend, outputs, info)
    return info


def fill_failed(backend: Backend, outputs: tuple[Any, ...], info: Any) -> None:
    """Overwrite the results of failed matrices with NaN, in place, without waiting."""
    if backend.spoils_failures:
        return
    for output in outputs:
        if output is not None:
            backend.fill_nan(output, info)


def _failure(backend: Backend, a: Any, info: Any, failure: Failure) -> LinAlgError:
    """Build the error: NumPy's text, then which matrices failed and why."""
    indices = [tuple(int(i) for i in index) for index in np.argwhere(info)]
    causes = [_cause(backend, a, info, failure, index) for index in indices[:_LISTED]]
    if info.ndim == 0:
        return LinAlgError(f"{failure.text}: {causes[0]}", indices, info)
    listed = [f"[{', '.join(map(str, i))}] {c}" for i, c in zip(indices, causes)]  # noqa: B905 - causes are the first few
    more = ["..."] if len(indices) > _LISTED else []
    message = (
        f"{failure.text}: {len(indices)} of {info.size} matrices failed: "
        f"{'; '.join(listed + more)}"
    )
    return LinAlgError(message, indices, info)


def _cause(
    backend: Backend, a: Any, info: Any, failure: Failure, index: tuple[int, ...]
) -> str:
    """Say why one matrix failed; only failed matrices are copied to the host."""
    matrix = backend.to_host(a[index])
    if failure.part != "A":
        matrix = np.tril(matrix) if failure.part == "L" else np.triu(matrix)
    if not np.isfinite(matrix).all():
        return "contains NaN or infinity"
    return failure.status.format(info=info[index])
