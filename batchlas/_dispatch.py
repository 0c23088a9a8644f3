"""Which kind of array is this: type -> backend module, or somebody else's array.

Decided here: the array types that batchlas computes on, the ones it gives way to
(NEP 18), and the ones it refuses. No array library is imported that the caller has not
imported already: a type is recognised by the module that defines it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

import batchlas._backends.numpy as numpy_backend
from batchlas._runtime.state import process_wide

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._backends import Backend

# numpy.linalg's own functions, held before install() can replace them. Array types that
# implement NEP 18 know these objects and no others.
NUMPY_FUNCTIONS: dict[str, Callable[..., Any]] = process_wide(
    "numpy_functions",
    lambda: {
        name: vars(np.linalg)[name]
        for name in ("cholesky", "eigh", "eigvalsh", "svd", "svdvals")
        if name in vars(np.linalg)  # NumPy 1 has no svdvals
    },
)

# Package that defines a type -> the module of ours that computes on it.
_LIBRARIES = {"dpnp": "dpnp", "dpctl": "dpnp", "cupy": "cupy"}

_by_type: dict[type, Backend | None] = {np.ndarray: numpy_backend}
# The __array_function__ of ndarray subclasses that are computed on here.
_computed_here = {np.ndarray.__array_function__}


def backend_of(a: Any) -> Backend | None:
    """Return the backend of `a`, or None when its own type is to handle the call.

    Raises
    ------
    TypeError
        For an array type that batchlas neither knows nor can give way to.
    """
    try:
        return _by_type[type(a)]
    except KeyError:
        backend = _by_type[type(a)] = _resolve(type(a))
        return backend


def claim(kind: type) -> None:
    """Compute on `kind`, an ndarray subclass, instead of giving way to it."""
    _computed_here.add(kind.__array_function__)  # type: ignore[attr-defined]


def _resolve(kind: type) -> Backend | None:
    """Decide once per type; see `backend_of`."""
    if issubclass(kind, np.ndarray):
        return numpy_backend if kind.__array_function__ in _computed_here else None
    for base in kind.__mro__:
        library = _LIBRARIES.get(base.__module__.partition(".")[0])
        if library is not None:
            backend = importlib.import_module(f"batchlas._backends.{library}")
            return cast("Backend", backend)
    if hasattr(kind, "__array_function__"):
        return None
    if issubclass(kind, np.generic):  # NumPy 2's scalars have __array_namespace__
        return numpy_backend
    if hasattr(kind, "__dlpack__") or hasattr(kind, "__array_namespace__"):
        _refuse(kind)
    return numpy_backend  # lists, scalars, buffers: whatever numpy.asarray takes


def _refuse(kind: type) -> NoReturn:
    message = (
        f"batchlas.linalg cannot take {kind.__module__}.{kind.__qualname__}; allowed: "
        "numpy, dpnp and cupy arrays, nested lists, and types with __array_function__. "
        "Convert it first, for example with numpy.asarray"
    )
    raise TypeError(message)


def give_way(name: str, a: Any, *args: Any, **kwargs: Any) -> Any:
    """Let the type of `a` compute numpy.linalg's function `name` (NEP 18).

    Raises
    ------
    TypeError
        If NumPy has no such function or the type does not implement it.
    """
    kind = type(a)
    function = NUMPY_FUNCTIONS.get(name)
    if function is not None:
        result = kind.__array_function__(a, function, (kind,), (a, *args), kwargs)
        if result is not NotImplemented:
            return result
    message = (
        f"batchlas.linalg.{name} gives way to the __array_function__ of "
        f"{kind.__module__}.{kind.__qualname__}, which does not implement it"
    )
    raise TypeError(message)
