"""The devices of this machine that arrays can lie on, and how they get there."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas.exceptions import BatchlasWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from batchlas._backends import Backend
    from batchlas._runtime.devices import Device


@dataclass(frozen=True, slots=True)
class Target:
    """A device as one kind of array sees it.

    Attributes
    ----------
    device : Device
        Its record; ``device.key`` names its tables, ``device.kind`` the arrays.
    place : callable (host array) -> array
        Puts an array there.
    wait : callable (array) -> None
        Returns when the work that made an array is done.
    maths : module
        NumPy, or the arrays' own library where it makes and checks them faster: a GPU
        checks a large stack in the time that the way to the host alone would take.
    """

    device: Device
    place: Callable[[NDArray[Any]], Any] = field(repr=False)
    wait: Callable[[Any], None] = field(repr=False)
    maths: Any = field(default=np, repr=False)


@cache
def targets() -> tuple[Target, ...]:
    """Return every device of this machine, the host's processor first."""
    found = [_numpy()]
    for library, devices in (("dpnp", _dpnp), ("cupy", _cupy)):
        if importlib.util.find_spec(library) is None:
            continue
        try:
            found += devices()
        except Exception as error:  # noqa: BLE001 - the other libraries still work
            why = f"{type(error).__name__}: {error}"
            warnings.warn(
                f"{library} is left out: {why}", BatchlasWarning, stacklevel=2
            )
    return tuple(found)


def _backend(kind: str) -> Backend:
    module: Any = importlib.import_module(f"batchlas._backends.{kind}")
    return module  # type: ignore[no-any-return]


def _numpy() -> Target:
    return Target(_backend("numpy").device(np.empty(0)), np.asarray, lambda _a: None)


def _dpnp() -> Iterator[Target]:
    """Yield the first SYCL device of each key."""
    import dpctl
    import dpnp

    known = set()
    for sycl in dpctl.get_devices():
        device = _backend("dpnp").device(dpnp.empty(1, dtype=np.float32, device=sycl))
        if device.key not in known:
            known.add(device.key)
            place = partial(dpnp.asarray, device=sycl)
            yield Target(device, place, lambda a: a.sycl_queue.wait())


def _cupy() -> Iterator[Target]:
    """Yield CuPy's current GPU, if there is one."""
    import cupy

    try:
        a = cupy.empty(1, np.float32)
    except cupy.cuda.runtime.CUDARuntimeError:
        return  # CuPy is installed, but no GPU is here
    device = _backend("cupy").device(a)
    wait = cupy.cuda.get_current_stream().synchronize
    yield Target(device, cupy.asarray, lambda _a: wait(), cupy)


def host_copy(target: Target, a: Any) -> NDArray[Any]:
    """Return an array's values on the host, waiting for them."""
    return _backend(target.device.kind).to_host(a)


def checkable(target: Target, a: Any) -> Any:
    """Return an array as the target's maths takes it."""
    return host_copy(target, a) if target.maths is np else a
