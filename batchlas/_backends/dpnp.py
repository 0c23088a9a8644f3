"""dpnp arrays and the usm_ndarray under them, on the SYCL device of their own queue."""

from __future__ import annotations

import ctypes
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import dpnp
import numpy as np
from dpctl.memory import MemoryUSMDevice

try:
    from dpnp.tensor import usm_ndarray
except ImportError:  # before dpnp 0.20
    from dpctl.tensor import usm_ndarray

from batchlas._runtime.devices import Device, host_cpu_key
from batchlas._runtime.layout import Extent
from batchlas._runtime.lease import ALIGNMENT
from batchlas._runtime.settings import settings
from batchlas._runtime.sycl import check_not_orphaned, in_turn, turn_on
from batchlas._runtime.usm import is_kept, reused_memory
from batchlas._runtime.workspace import Arena, arena_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

kind = "dpnp"
xp = dpnp
spoils_failures = False


def turn(a: Any) -> AbstractContextManager[None]:
    """Return the use of the SYCL runtime, which ends when the work on `a` is done."""
    check_not_orphaned()
    return turn_on(a.sycl_queue)


def lift(a: Any) -> tuple[Any, Callable[[Any], Any] | None]:
    """Return `a` as a dpnp array; a usm_ndarray's results become usm_ndarrays."""
    check_not_orphaned()
    if isinstance(a, dpnp.ndarray):
        return a, None
    return dpnp.asarray(a), _to_usm


def _to_usm(result: Any) -> Any:
    return result.get_array()


def device(a: Any) -> Device:
    """Describe the device of the array's queue."""
    return _describe(a.sycl_device, settings().no_vendor)


@lru_cache(maxsize=64)
def _describe(sycl: Any, no_vendor: bool) -> Device:
    key, family, arch = _key_of(sycl)
    return Device(
        key=key,
        family=family,
        arch=arch,
        kind=kind,
        is_gpu=sycl.is_gpu,
        local_mem_bytes=sycl.local_mem_size,
        max_work_group=sycl.max_work_group_size,
        has_fp64=sycl.has_aspect_fp64,
        has_vendor=not no_vendor,
        name=sycl.name.strip(),
    )


def _key_of(sycl: Any) -> tuple[str, str, int]:
    """Return key, family and architecture rank of a SYCL device."""
    if sycl.is_cpu:
        key, rank = host_cpu_key()
        return key, "cpu", rank
    family = "intel" if "intel" in sycl.vendor.lower() else "other"
    slug = re.sub(r"[^a-z0-9]+", "_", sycl.name.lower()).strip("_")
    digits = re.search(r"[0-9]+", slug)
    return f"{family}_{slug}", family, int(digits[0]) if digits else 0


def default_float(a: Any) -> Any:
    """Return the dtype of integers' results: float64 where the device has it."""
    return dpnp.float64 if a.sycl_device.has_aspect_fp64 else dpnp.float32


def queue(a: Any) -> Any:
    """Return the array's own queue."""
    return a.sycl_queue


def packed(a: Any) -> Any:
    """Return the stack C-contiguous; the array itself if it is."""
    return a if a.flags.c_contiguous else dpnp.ascontiguousarray(a)


def empty(shape: tuple[int, ...], dtype: Any, like: Any) -> Any:
    """Return uninitialised USM memory on the queue of `like`.

    On a CPU device it may be memory of a result that the caller has dropped.
    """
    queue, usm_type = like.sycl_queue, like.usm_type
    nbytes = math.prod(shape) * dtype.itemsize
    if is_kept(nbytes, like.sycl_device):
        memory = reused_memory(nbytes, usm_type, queue)
        return dpnp.asarray(usm_ndarray(shape, dtype, buffer=memory))
    return dpnp.empty(shape, dtype=dtype, sycl_queue=queue, usm_type=usm_type)


def workspace(a: Any) -> Arena:
    """Return this thread's scratch for kernels on the queue of `a`."""
    return arena_of(kind, a.sycl_queue, UsmMemory)


class UsmMemory:
    """Scratch in memory of a queue's device."""

    def __init__(self, queue: Any) -> None:
        self._queue = queue
        self.is_in_order: bool = queue.is_in_order

    def allocate(self, nbytes: int) -> Any:
        """Return an aligned block."""
        return MemoryUSMDevice(nbytes, alignment=ALIGNMENT, queue=self._queue)

    def array(
        self, block: Any, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Any:
        """Return a dpnp array on the block's bytes from `start` on."""
        offset = start // dtype.itemsize
        return dpnp.asarray(usm_ndarray(shape, dtype, buffer=block, offset=offset))

    def wait(self) -> None:
        """Wait for the queue."""
        with in_turn:
            self._queue.wait()


def extent(a: Any) -> Extent:
    """Return where the elements of `a` lie in memory.

    By the interface, whose strides count elements in every release; ``a.strides``
    counts bytes from dpnp 0.20 on. None there means C order.
    """
    facts = a.__sycl_usm_array_interface__
    steps = facts["strides"]
    if steps is None:
        steps = [math.prod(a.shape[axis + 1 :]) for axis in range(a.ndim)]
    return Extent(
        facts["data"][0] + facts["offset"] * a.itemsize,
        a.shape,
        tuple(step * a.itemsize for step in steps),
        a.itemsize,
        a.sycl_queue,
        a.flags.writable,
    )


def to_host(a: Any) -> NDArray[Any]:
    """Copy an array to the host, waiting for it."""
    return dpnp.asnumpy(a)  # type: ignore[no-any-return]


def host_view(a: Any) -> NDArray[Any] | None:
    """Return the values of a C-contiguous array on a CPU device without copying.

    A CPU device's USM allocations are ordinary memory of this process. None for other
    devices and layouts. The view must not outlive `a`.
    """
    if not (a.sycl_device.is_cpu and a.flags.c_contiguous):
        return None
    a.sycl_queue.wait()
    memory = a.__sycl_usm_array_interface__
    address = memory["data"][0] + memory["offset"] * a.itemsize
    buffer = (ctypes.c_char * a.nbytes).from_address(address)
    return np.ndarray(a.shape, a.dtype, buffer)


def zeros_info(a: Any) -> Any:
    """Return the status of an all-good stack, on its queue."""
    return dpnp.zeros(a.shape[:-2], dtype=dpnp.int32, sycl_queue=a.sycl_queue)


def fill_nan(output: Any, info: Any) -> None:
    """Set ``output[i]`` to NaN wherever ``info[i]`` is positive, in place."""
    failed = (info > 0).reshape(info.shape + (1,) * (output.ndim - info.ndim))
    output[...] = dpnp.where(failed, dpnp.nan, output)
