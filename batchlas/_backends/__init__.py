"""One module per kind of array: what the rest needs to know about where it lives.

A backend is a module that satisfies `Backend`. It imports its array library at the top,
so it must itself be imported only when an array of that library has arrived
(`batchlas._dispatch` does that).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from batchlas._runtime.devices import Device
    from batchlas._runtime.layout import Extent
    from batchlas._runtime.lease import Layout, Workspace


def in_host_memory(backend: Backend, a: Any) -> NDArray[Any]:
    """Return the values of an array that a CPU device's kernel may use in place.

    Raises
    ------
    RuntimeError
        If it is not there: ``can_run`` promised what the backend does not hold.
    """
    view = backend.host_view(a)
    if view is None:
        message = f"{backend.kind} array of shape {a.shape} is not in host memory"
        raise RuntimeError(message)
    return view


def stacked(arrays: Iterable[Any], axes: int, batch: int) -> list[Any]:
    """Return arrays whose `axes` batch axes are one, each itself if it has just one.

    Reshaping a dpnp array takes 25 us and more, as long as a kernel on a small stack:
    where there are views of NumPy, reshape those.
    """
    if axes == 1:
        return list(arrays)
    return [array.reshape(batch, *array.shape[axes:]) for array in arrays]


def any_failed(backend: Backend, info: Any) -> bool:
    """Whether a status array that a kernel on the device wrote is not all 0."""
    view = backend.host_view(info)
    # of integers that are not negative, max() is read at twice the speed of any()
    return bool((backend.to_host(info) if view is None else view).max(initial=0))


def borrowed(
    backend: Backend, a: Any, layout: Layout | None
) -> AbstractContextManager[Any]:
    """Return a lease of what a layout asks for beside `a`; of nothing for None."""
    if layout is None:
        return nullcontext(())
    return backend.workspace(a).lease(layout)


class Backend(Protocol):
    """What an array library's module must offer."""

    kind: str
    """Short name, also the value of the key ``array`` in tuned tables."""
    xp: Any
    """The library's own namespace, with NumPy's names."""
    spoils_failures: bool
    """Whether every routine here leaves NaN in the results of a matrix that failed."""

    def turn(self, a: Any) -> AbstractContextManager[None]:
        """Return what a public call on `a` holds from its beginning to its end."""

    def lift(self, a: Any) -> tuple[Any, Callable[[Any], Any] | None]:
        """Return `a` as a plain array and how to wrap results (None: as they are)."""

    def device(self, a: Any) -> Device:
        """Describe the device that holds `a`."""

    def default_float(self, a: Any) -> Any:
        """Return the dtype in which integers and booleans are computed."""

    def queue(self, a: Any) -> Any:
        """Return the SYCL queue that kernels for `a` run on, None without one."""

    def packed(self, a: Any) -> Any:
        """Return the stack C-contiguous; `a` itself if it is."""

    def empty(self, shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
        """Return uninitialised, aligned memory beside `like`."""

    def workspace(self, a: Any) -> Workspace:
        """Return the scratch memory of kernels that run on the queue of `a`."""

    def host_view(self, a: Any) -> NDArray[Any] | None:
        """Return a C-contiguous array's values in the host's memory, if they are."""

    def extent(self, a: Any) -> Extent:
        """Return where the elements of `a` lie in memory."""

    def to_host(self, a: Any) -> NDArray[Any]:
        """Copy an array to the host, waiting for it."""

    def zeros_info(self, a: Any) -> Any:
        """Return an int32 status array of `a`'s batch shape, all 0, beside `a`."""

    def fill_nan(self, output: Any, info: Any) -> None:
        """Set ``output[i]`` to NaN wherever ``info[i]`` is positive, in place."""
