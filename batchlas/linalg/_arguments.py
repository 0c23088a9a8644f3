"""Checks that every public function makes before an op sees its arguments.

Errors and their texts are NumPy's. Decided here: which dtypes are computed, and in
which type the others are (integers and booleans in float64, as in NumPy).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from batchlas._dispatch import backend_of
from batchlas._runtime.dtypes import NAME_OF
from batchlas._runtime.info import check_receiver, deliver
from batchlas._runtime.settings import mark_used
from batchlas.exceptions import LinAlgError

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._backends import Backend

_TO_FLOAT64 = frozenset("biu")


class Stack(NamedTuple):
    """A checked argument: the plain array and how its results are wrapped."""

    array: Any
    wrap: Callable[[Any], Any] | None

    def wrapped(self, result: Any) -> Any:
        """Return a result as numpy.linalg would for the caller's type."""
        return result if self.wrap is None else self.wrap(result)

    def status(self, backend: Backend, status: Any, info: Any) -> Any:
        """Return a status in the caller's `info`, or as other values without one."""
        if info is None:
            return self.values(status)
        deliver(backend, status, info)
        return info

    def values(self, result: Any) -> Any:
        """Return real values or a status: of subclasses of ndarray, NumPy wraps none.

        What wraps another library's arrays turns all of them into the caller's type.
        """
        if self.wrap is None or isinstance(result, np.ndarray):
            return result
        return self.wrap(result)


def stack_of(backend: Backend, a: Any, *, square: bool = True) -> Stack:
    """Return `a` as a stack in a native dtype that LAPACK computes in.

    Raises
    ------
    LinAlgError
        For fewer than two dimensions, or where `square` for unequal last two.
    TypeError
        For a dtype that no routine computes.
    """
    mark_used()
    array, wrap = backend.lift(a)
    shape = array.shape
    if len(shape) < 2:
        message = (
            f"{len(shape)}-dimensional array given. Array must be at least "
            "two-dimensional"
        )
        raise LinAlgError(message)
    if square and shape[-1] != shape[-2]:
        message = "Last 2 dimensions of the array must be square"
        raise LinAlgError(message)
    dtype = array.dtype
    if dtype.char not in NAME_OF or not dtype.isnative:
        array = _converted(backend, array)
    return Stack(array, wrap)


def _converted(backend: Backend, array: Any) -> Any:
    """Return the array in the native dtype that it is computed in."""
    dtype = array.dtype
    if dtype.char in NAME_OF:
        return array.astype(dtype.newbyteorder("="))
    if dtype.kind in _TO_FLOAT64:
        return array.astype(backend.default_float(array))
    message = f"array type {dtype.name} is unsupported in linalg"
    raise TypeError(message)


def check_info(backend: Backend | None, a: Any, info: Any) -> None:
    """Refuse an ``info=`` that cannot receive the status of the stack `a`.

    Raises
    ------
    TypeError
        If it is not an array of the library that holds `a`, or `a` is an array that
        batchlas does not compute on itself.
    ValueError
        As `batchlas._runtime.info.check_receiver`.
    """
    if info is None:
        return
    if backend is None:
        message = f"info= is for arrays that batchlas computes on, not {type(a)}"
        raise TypeError(message)
    if backend_of(info) is not backend or not hasattr(info, "strides"):
        message = f"info is a {type(info).__name__}, not a {backend.kind} array"
        raise TypeError(message)
    check_receiver(backend, a, info)


def checked_uplo(uplo: str) -> str:
    """Return "L" or "U".

    Raises
    ------
    ValueError
        For anything else, with NumPy's text.
    """
    upper = uplo.upper() if isinstance(uplo, str) else ""
    if upper not in ("L", "U"):
        message = "UPLO argument must be 'L' or 'U'"
        raise ValueError(message)
    return upper
