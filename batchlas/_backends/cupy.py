"""CuPy arrays, on the GPU that holds them and on CuPy's current stream."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import cupy
import numpy as np

from batchlas._runtime.devices import Device
from batchlas._runtime.layout import Extent
from batchlas._runtime.lease import Lease, Loan
from batchlas._runtime.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from batchlas._runtime.lease import Allocate, T

kind = "cupy"
xp = cupy
spoils_failures = True

_nothing = nullcontext()

# Device record by device id, with the generation of the settings it was made under.
_devices: dict[int, tuple[int, Device]] = {}


def turn(_a: Any) -> AbstractContextManager[None]:
    """Return nothing to hold: CUDA is safe for threads."""
    return _nothing


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


class Pool:
    """CuPy's memory pool behind the interface of an arena.

    The pool keeps what comes back for the stream that it was used on, so work that is
    still enqueued there runs before the memory's next use, and it serves all threads.
    """

    is_in_order = True

    def __init__(self) -> None:
        self.memory = self
        self._loans: set[Loan] = set()

    @property
    def live(self) -> tuple[str, ...]:
        """Names and sizes of the leases that are out."""
        return tuple(str(loan) for loan in self._loans)

    def lease(self, layout: Callable[[Allocate], T]) -> Lease[T]:
        """Return a lease of arrays on the current device, for the current stream."""
        return Lease(self, layout)

    def borrow(self, nbytes: int, what: str) -> Loan:
        """Lend memory of the pool."""
        loan = Loan(self.allocate(nbytes), 0, 0, nbytes, what)
        self._loans.add(loan)
        return loan

    def give_back(self, loan: Loan) -> None:
        """Let go of the memory; it is the pool's again with its last array."""
        self._loans.discard(loan)

    def trim(self) -> None:
        """Free what the pool holds unused."""
        cupy.get_default_memory_pool().free_all_blocks()

    def allocate(self, nbytes: int) -> cupy.ndarray:
        """Return an aligned block; CuPy aligns to 512 bytes."""
        return cupy.empty(nbytes, np.uint8)

    def array(
        self,
        block: cupy.ndarray,
        start: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
    ) -> cupy.ndarray:
        """Return an array on the block's bytes from `start` on."""
        return cupy.ndarray(shape, dtype, block.data + start)

    def wait(self) -> None:
        """Wait for the current stream."""
        cupy.cuda.get_current_stream().synchronize()


_pool = Pool()


def workspace(_a: cupy.ndarray) -> Pool:
    """Return scratch for kernels on the current stream of the device of `a`."""
    return _pool


def extent(a: cupy.ndarray) -> Extent:
    """Return where the elements of `a` lie in memory."""
    place = a.data.device_id
    return Extent(a.data.ptr, a.shape, a.strides, a.itemsize, place)


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
