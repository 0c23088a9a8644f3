"""CuPy arrays, on the GPU that holds them and on CuPy's current stream."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from batchlas._runtime.devices import Device
from batchlas._runtime.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

kind = "cupy"
xp = cupy

# Device record by device id, with the generation of the settings it was made under.
_devices: dict[int, tuple[int, Device]] = {}


def lift(a: cupy.ndarray) -> tuple[cupy.ndarray, Callable[[Any], Any] | None]:
    """Return `a` itself: results are plain CuPy arrays."""
    return a, None


def device(a: cupy.ndarray) -> Device:
    """Describe the GPU that holds `a`; about a microsecond when warm."""
    device_id = a.data.device_id
    generation = settings().generation
    cached = _devices.get(device_id)
    if cached is None or cached[0] != generation:
        cached = generation, _describe(device_id)
        _devices[device_id] = cached
    return cached[1]


def _describe(device_id: int) -> Device:
    """Ask the driver about a GPU."""
    runtime = cupy.cuda.runtime
    capability = cupy.cuda.Device(device_id).compute_capability
    name = runtime.getDeviceProperties(device_id)["name"]
    return Device(
        key=f"sm_{capability}",
        family="sm",
        arch=int(capability),
        kind=kind,
        is_gpu=True,
        # What a kernel may have after opting in; without it, 48 KiB.
        local_mem_bytes=runtime.deviceGetAttribute(
            runtime.cudaDevAttrMaxSharedMemoryPerBlockOptin, device_id
        ),
        max_work_group=1024,
        has_fp64=True,
        has_vendor=not settings().no_vendor and _has_cusolver(),
        name=name.decode(errors="replace"),
    )


@cache
def _has_cusolver() -> bool:
    """Whether cuSOLVER can be loaded; asked once per process."""
    try:
        from cupy_backends.cuda.libs import cublas, cusolver  # noqa: F401
    except ImportError:
        return False
    return True


def default_float(_a: cupy.ndarray) -> np.dtype[np.float64]:
    """Return the dtype in which integers and booleans are computed."""
    return np.dtype(np.float64)


def to_host(a: cupy.ndarray) -> NDArray[Any]:
    """Copy an array to the host, waiting for it."""
    return cupy.asnumpy(a)  # type: ignore[no-any-return]


def zeros_info(a: cupy.ndarray) -> cupy.ndarray:
    """Return an int32 status array of `a`'s batch shape, all 0, beside `a`."""
    with a.device:
        return cupy.zeros(a.shape[:-2], np.int32)


def fill_nan(output: cupy.ndarray, info: cupy.ndarray) -> None:
    """Set ``output[i]`` to NaN wherever ``info[i]`` is positive, in place."""
    with output.device:
        trailing = (1,) * (output.ndim - info.ndim)
        failed = (info > 0).reshape(info.shape + trailing)
        cupy.copyto(output, cupy.nan, where=failed)
