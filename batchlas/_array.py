"""An ndarray whose numpy.linalg calls run in batchlas (NEP 18)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas import linalg
from batchlas._dispatch import NUMPY_FUNCTIONS, claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

# batchlas' function for each name of numpy.linalg that it computes.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "cholesky": linalg.cholesky,
    "eigh": linalg.eigh,
    "eigvalsh": linalg.eigvalsh,
    "svd": linalg.svd,
    "svdvals": linalg.svdvals,
}
_OURS = {NUMPY_FUNCTIONS[name]: FUNCTIONS[name] for name in NUMPY_FUNCTIONS}


class Array(np.ndarray[Any, np.dtype[Any]]):
    """An ndarray in all but one respect: numpy.linalg's calls on it run in batchlas.

    Make one with `batchlas.asarray`. Results of numpy.linalg keep the type, so what is
    computed from them runs in batchlas too.
    """

    def __array_wrap__(
        self, array: Any, context: Any = None, return_scalar: bool = False
    ) -> Any:
        """Return scalars where ndarray does; other subclasses get 0-d arrays."""
        return array[()] if return_scalar else array.view(type(self))

    def __array_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: Iterable[Any],
        kwargs: Mapping[str, Any],
    ) -> Any:
        """Send the functions that batchlas computes there, the others to NumPy."""
        ours = _OURS.get(func)
        if ours is not None:
            return ours(*args, **kwargs)
        return super().__array_function__(func, types, args, kwargs)


claim(Array)


def asarray(a: Any, dtype: Any = None) -> NDArray[Any]:
    """Return host data as an ndarray whose numpy.linalg calls run in batchlas.

    Parameters
    ----------
    a : array_like
        Anything numpy.asarray takes. An ndarray is not copied: the result shares its
        memory.
    dtype : dtype, optional
        As for numpy.asarray.

    Returns
    -------
    Array
        A subclass of numpy.ndarray.

    Raises
    ------
    TypeError
        For arrays on a device, which numpy.linalg reaches through `install`.

    Examples
    --------
    >>> import numpy as np, batchlas
    >>> stack = batchlas.asarray([[[4.0, 2.0], [2.0, 5.0]]])
    >>> np.linalg.cholesky(stack)  # runs in batchlas
    Array([[[2., 0.],
            [1., 2.]]])
    """
    library = type(a).__module__.partition(".")[0]
    if library in ("dpnp", "dpctl", "cupy"):
        message = (
            f"asarray takes host data, not {library} arrays; batchlas.install() sends "
            "numpy.linalg calls on them to batchlas"
        )
        raise TypeError(message)
    return np.asarray(a, dtype).view(Array)
