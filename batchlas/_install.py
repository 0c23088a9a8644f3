"""Sending numpy.linalg, cupy.linalg and dpnp.linalg to batchlas, and undoing it.

This is the one module that changes other libraries, and only when asked to.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._array import FUNCTIONS
from batchlas._dispatch import NUMPY_FUNCTIONS
from batchlas._runtime.forks import Lock
from batchlas._runtime.state import process_wide

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

_LIBRARIES = ("dpnp", "cupy")

_lock = process_wide("install_lock", Lock)
# What was replaced, in order: (object, attribute, the value it had or None).
_replaced: list[tuple[Any, str, Any]] = process_wide("replaced", list)


def install() -> None:
    """Send numpy.linalg, cupy.linalg and dpnp.linalg calls to batchlas.

    The functions that batchlas computes (cholesky, eigh, eigvalsh, svd, svdvals) are
    replaced in these modules, and dpnp arrays get ``__array_function__``, so that an
    unchanged script that calls ``numpy.linalg.eigh`` on NumPy, dpnp or CuPy arrays
    runs here. A library that is imported later is changed when it is imported. Names
    that a module has already taken with ``from numpy.linalg import eigh`` stay
    NumPy's, but reach batchlas for dpnp and CuPy arrays.

    Installing twice is the same as once.

    See Also
    --------
    uninstall, installed

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> batchlas.install()
    >>> np.linalg.eigh is batchlas.linalg.eigh
    True
    >>> batchlas.uninstall()
    """
    with _lock:
        if _replaced:
            return
        for name in NUMPY_FUNCTIONS:
            _replace(np.linalg, name, FUNCTIONS[name])
        for library in _LIBRARIES:
            if sys.modules.get(library) is not None:  # None: the import is blocked
                _patch(library)
        sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Put back what `install` replaced; nothing happens if nothing was."""
    with _lock:
        while _replaced:
            owner, name, value = _replaced.pop()
            if value is None:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        if _finder in sys.meta_path:
            sys.meta_path.remove(_finder)


@contextmanager
def installed() -> Iterator[None]:
    """Install for a ``with`` block; afterwards all is as it was before it.

    The change is seen by the whole process, not by this thread alone.
    """
    before = bool(_replaced)
    install()
    try:
        yield
    finally:
        if not before:
            uninstall()


def _replace(owner: Any, name: str, value: Any) -> None:
    _replaced.append((owner, name, vars(owner).get(name)))
    setattr(owner, name, value)


def _patch(library: str) -> None:
    """Replace the functions of a library that is imported.

    The vendor adapter is imported first, since it takes the originals as it finds them.
    """
    if library == "dpnp":
        import dpnp

        import batchlas._vendor.onemkl

        _replace_functions(dpnp.linalg)
        _replace(dpnp.ndarray, "__array_function__", _dpnp_array_function)
    else:
        import cupy

        import batchlas._vendor.cusolver  # noqa: F401 - see above

        _replace_functions(cupy.linalg)


def _replace_functions(module: ModuleType) -> None:
    for name, function in FUNCTIONS.items():
        _replace(module, name, function)


def _dpnp_array_function(
    _self: Any,
    func: Callable[..., Any],
    _types: Iterable[type],
    args: Iterable[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """NEP 18 for dpnp arrays: batchlas' function, else dpnp's of the same name."""
    import dpnp

    owner = dpnp.linalg if func.__module__ == "numpy.linalg" else dpnp
    function = vars(owner).get(func.__name__)
    return NotImplemented if function is None else function(*args, **kwargs)


class _PatchOnImport(importlib.abc.MetaPathFinder):
    """Finds nothing itself; lets a library load, then patches it."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname not in _LIBRARIES:
            return None
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec(fullname, path, target)
                if spec is not None and spec.loader is not None:
                    spec.loader = _PatchingLoader(spec.loader)
                    return spec
        return None


class _PatchingLoader(importlib.abc.Loader):
    """Loads as the library's own loader does, then patches the library."""

    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        module.__loader__ = self._loader
        with _lock:
            if _replaced:
                _patch(module.__name__)


_finder = process_wide("finder", _PatchOnImport)
