"""LAPACK through NumPy for small stacks, with as little around it as can be.

On one small matrix LAPACK takes 1 us and NumPy's own function around it 2 us more. The
adapter in `lapack` takes 8: it looks for what is not finite matrix by matrix, gathers a
status, and may cut the stack. Here one dot product shows that the input is finite and
another that nothing failed; where they do not, the caller goes the long way.
"""

from __future__ import annotations

import math
import threading
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._runtime.dtypes import NAME_OF, REAL_OF
from batchlas._runtime.health import is_trusted
from batchlas._vendor.lapack import routine
from batchlas._vendor.screen import BLOCK

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    # Returns the results for a stack, None if it has to go the long way.
    Quick = Callable[[NDArray[Any]], tuple[NDArray[Any], ...] | None]

# Before, NumPy kept its error state out of contexts, and entering it takes longer.
_HAS_CONTEXTS = int(np.__version__.partition(".")[0]) >= 2

# Looking at the last pivots alone takes as long as reading so many elements more.
_PIVOTS_ALONE_ABOVE = 2048


class _Silence(threading.local):
    """Calls a function with NumPy's floating-point errors ignored.

    Entering a context that a thread has kept takes a tenth of ``np.errstate``.
    """

    def __init__(self) -> None:
        with np.errstate(all="ignore"):
            self.run = copy_context().run


_silence = _Silence()


def quick_call(op: str, a: NDArray[Any], option: str) -> Quick | None:
    """Return the short call for stacks of the dtype and shape of `a`, None without one.

    Parameters
    ----------
    op : {"potrf", "syev", "gesvd"}
    a : ndarray, shape (..., m, n)
    option : str
        As `routine` takes it.
    """
    char = a.dtype.char
    if not (_HAS_CONTEXTS and a.dtype.isnative and char in NAME_OF and is_trusted()):
        return None
    solve, letters, signature = routine(op, option, a.shape[-2:], char)
    # Where LAPACK failed, NumPy writes NaN into all results; and NaN that overflow has
    # left reaches the last pivot.
    by_pivots = op == "potrf"
    telling = 0 if by_pivots else letters.index("r")
    order = a.shape[-1]
    dtypes = _dtypes(letters, char)
    # NumPy computes single precision in double, too; a copy costs less than its cast.
    is_single, is_alone = char in "fF", len(dtypes) == 1
    wide = np.dtype(signature[0])

    def compute(a: NDArray[Any]) -> tuple[NDArray[Any], ...] | None:
        if is_single:
            a = a.astype(wide)
        if not _is_finite(a.ravel("K")):  # in memory order: no copy if transposed
            return None
        results = solve(a)
        if is_alone:
            results = (results,)
        told = results[telling].ravel()
        if by_pivots:
            told = _pivots(told, order)
        if not _is_finite(told):
            return None
        if is_single:
            return tuple(map(np.ndarray.astype, results, dtypes))
        return results  # type: ignore[no-any-return]

    return partial(_silently, compute)


def _silently(compute: Quick, a: NDArray[Any]) -> tuple[NDArray[Any], ...] | None:
    try:
        return _silence.run(compute, a)
    except RuntimeError:
        return None  # the thread is in that context: a finaliser called


def _dtypes(letters: str, char: str) -> list[np.dtype[Any]]:
    """Return what results are rounded to: "t" the input's dtype, "r" its real one."""
    return [np.dtype(char if each == "t" else REAL_OF[char]) for each in letters]


def _pivots(factors: NDArray[Any], order: int) -> NDArray[Any]:
    """Return the last pivots of flat factors, or all of these if that reads faster."""
    few = factors.size <= _PIVOTS_ALONE_ABOVE
    return factors if few else factors[order**2 - 1 :: order**2]


def _is_finite(flat: NDArray[Any]) -> bool:
    """Whether one pass shows that all is finite; False may also mean overflow.

    As `batchlas._vendor.screen.is_surely_finite`, in half the time where nothing warns
    of the overflow.
    """
    if flat.size <= BLOCK:
        return math.isfinite(abs(flat.dot(flat)))
    blocks = (flat[start : start + BLOCK] for start in range(0, flat.size, BLOCK))
    return all(math.isfinite(abs(block.dot(block))) for block in blocks)
