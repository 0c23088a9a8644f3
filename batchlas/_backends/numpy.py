"""NumPy arrays, on the host's processor."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._runtime.devices import (
    CACHE_LINE_BYTES,
    Device,
    host_cpu_key,
    host_cpu_name,
)
from batchlas._runtime.layout import Extent
from batchlas._runtime.lease import ALIGNMENT
from batchlas._runtime.reuse import reused_bytes
from batchlas._runtime.settings import settings
from batchlas._runtime.sycl import host_queue
from batchlas._runtime.workspace import Arena, arena_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

kind = "numpy"
xp = np
spoils_failures = False

_nothing = nullcontext()


def turn(_a: Any) -> AbstractContextManager[None]:
    """Return nothing to hold: LAPACK needs no turn, and a launch takes its own."""
    return _nothing


def lift(a: Any) -> tuple[NDArray[Any], Callable[[Any], Any] | None]:
    """Return `a` as an ndarray; results are wrapped as numpy.linalg wraps them."""
    if type(a) is np.ndarray:
        return a, None
    stack = np.asarray(a)
    wrap = a.__array_wrap__ if isinstance(a, np.ndarray) else None
    return stack, wrap


def device(_a: Any) -> Device:
    """Describe the host's processor; native kernels need a SYCL runtime beside it."""
    return _host(settings().no_vendor, host_queue())


def queue(_a: Any) -> Any:
    """Return the queue that runs kernels on the host's memory, None without one."""
    return host_queue()


@lru_cache(maxsize=4)
def _host(no_vendor: bool, queue: Any) -> Device:
    key, rank = host_cpu_key()
    sycl = None if queue is None else queue.sycl_device
    return Device(
        key=key,
        family="cpu",
        arch=rank,
        kind=kind,
        is_gpu=False,
        local_mem_bytes=0 if sycl is None else sycl.local_mem_size,
        max_work_group=0 if sycl is None else sycl.max_work_group_size,
        has_fp64=True,
        has_vendor=not no_vendor,
        name=host_cpu_name(),
    )


def default_float(_a: NDArray[Any]) -> type[np.float64]:
    """Return the dtype of integers' results."""
    return np.float64


def packed(a: NDArray[Any]) -> NDArray[Any]:
    """Return the stack C-contiguous and aligned; the array itself if it is."""
    if a.flags.c_contiguous and a.flags.aligned:
        return a
    return np.array(a, order="C")


def empty(
    shape: tuple[int, ...], dtype: np.dtype[Any], _like: NDArray[Any]
) -> NDArray[Any]:
    """Return uninitialised memory that starts at a cache line.

    Kernels store whole vectors past the caches, which needs their alignment.
    """
    count = math.prod(shape) * dtype.itemsize
    memory = reused_bytes(count + CACHE_LINE_BYTES)
    start = -memory.ctypes.data % CACHE_LINE_BYTES
    return memory[start : start + count].view(dtype).reshape(shape)


def workspace(_a: Any) -> Arena:
    """Return this thread's scratch for kernels on the host's memory."""
    return arena_of(kind, host_queue(), lambda _queue: HostMemory())


class HostMemory:
    """Scratch in ordinary memory.

    Nothing is ever pending on it: a launch waits for its kernel.
    """

    is_in_order = True

    def allocate(self, nbytes: int) -> NDArray[np.uint8]:
        """Return an aligned block."""
        memory = np.empty(nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        return memory[start : start + nbytes]

    def array(
        self, block: Any, start: int, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """Return an ndarray on the block's bytes from `start` on."""
        return np.ndarray(shape, dtype, block, start)

    def wait(self) -> None:
        """Return at once."""


def host_view(a: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself: it is in the host's memory."""
    return a


def extent(a: NDArray[Any]) -> Extent:
    """Return where the elements of `a` lie in memory."""
    return Extent(
        a.__array_interface__["data"][0],
        a.shape,
        a.strides,
        a.itemsize,
        is_writable=a.flags.writeable,
    )


def to_host(a: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself: it is on the host."""
    return a


def zeros_info(a: NDArray[Any]) -> NDArray[np.int32]:
    """Return the status of an all-good stack."""
    return np.zeros(a.shape[:-2], np.int32)


def fill_nan(output: NDArray[Any], info: NDArray[np.int32]) -> None:
    """Set ``output[i]`` to NaN wherever ``info[i]`` is positive, in place."""
    output[info > 0] = np.nan
