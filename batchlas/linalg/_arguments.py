"""Checks that every public function makes before an op sees its arguments.

Errors and their texts are NumPy's. Decided here: which dtypes are computed, and in
which type the others are (integers and booleans in float64, as in NumPy).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from batchlas._dispatch import backend_of
from batchlas._runtime.dtypes import NAME_OF
from batchlas._runtime.receive import check_apart, check_receiver, deliver
from batchlas._runtime.settings import mark_used
from batchlas.exceptions import LinAlgError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


class Receivers:
    """The caller's arrays for results (``out=``) and the status (``info=``), checked.

    Parameters
    ----------
    backend : Backend or None
        Of the stack `a`, None for an array that batchlas does not compute on itself.
    a : array
    out : array, tuple of (array or None), or None
    info : array or None
    results : sequence of ((...), dtype) or None
        Shape and dtype of each result; None for one that is not computed.

    Raises
    ------
    TypeError
        For what is no array of the library that holds `a`, or if there is no backend.
    ValueError
        For another number of arrays, as `check_receiver` and `check_apart`.
    """

    def __init__(
        self,
        backend: Backend | None,
        a: Any,
        out: Any,
        info: Any,
        results: Sequence[tuple[tuple[int, ...], Any] | None] = (),
    ) -> None:
        if backend is None:
            _refuse_receivers(a, out=out, info=info)
            return
        self._backend = backend
        self._out = _as_tuple(out, len(results))
        given: dict[str, tuple[Any, Any]] = {
            "info": (info, (a.shape[:-2], np.dtype(np.int32)))
        }
        given |= {
            _name(out, at): pair
            for at, pair in enumerate(zip(self._out, results, strict=True))
        }
        used = {name: pair for name, pair in given.items() if pair[0] is not None}
        for name, (array, wanted) in used.items():
            _check_library(backend, name, array)
            if wanted is None:
                message = f"{name} is for a result that is not computed"
                raise ValueError(message)
            check_receiver(backend, a, name, array, *wanted)
        check_apart(backend, {name: array for name, (array, _) in used.items()})

    def received(self, *results: Any) -> tuple[Any, ...]:
        """Write results into the caller's arrays; return these, others as they are."""
        pairs = zip(self._out, results, strict=True)
        return tuple(
            result if array is None else _delivered(self._backend, result, array)
            for array, result in pairs
        )


def _refuse_receivers(a: Any, **receivers: Any) -> None:
    for name, given in receivers.items():
        if given is not None:
            message = f"{name}= is for arrays that batchlas computes on, not {type(a)}"
            raise TypeError(message)


def _as_tuple(out: Any, count: int) -> tuple[Any, ...]:
    if out is None:
        return (None,) * count
    given = out if isinstance(out, tuple) else (out,)
    if len(given) != count:
        message = f"out has {len(given)} arrays; results: {count}"
        raise ValueError(message)
    return given


def _name(out: Any, at: int) -> str:
    return f"out[{at}]" if isinstance(out, tuple) else "out"


def _check_library(backend: Backend, name: str, array: Any) -> None:
    if backend_of(array) is not backend or not hasattr(array, "strides"):
        message = f"{name} is a {type(array).__name__}, not a {backend.kind} array"
        raise TypeError(message)


def _delivered(backend: Backend, result: Any, array: Any) -> Any:
    deliver(backend, result, array)
    return array


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
