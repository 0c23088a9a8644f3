"""The family ``lane`` by numba-dpex: one matrix per thread, on dpnp arrays.

Decided here: how many threads a work-group has, what is compiled when, how a batch
smaller than a work-group is launched, and what scratch that takes. Kernels are compiled
once per order, dtype, triangle and group, and kept for the life of the process.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels import potrf_interleaved
from batchlas._kernels.compile import launch_dpex
from batchlas._kernels.kinds import DType
from batchlas._kernels.render import render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import DPEX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.render import Rendered
    from batchlas._runtime.devices import Device
    from batchlas._runtime.lease import Allocate, Layout

# What the runtimes take of the work-group memory for themselves; beyond the rest a
# kernel does not run, and nobody says so.
_SLACK_BYTES = 256
# More threads than this made no kernel faster on CPU devices.
_MOST_THREADS = 16


def fits(n: int, dtype: str, width: int, device: Device) -> bool:
    """Whether a work-group of `width` matrices of order `n` runs on a device."""
    itemsize = np.dtype(dtype).itemsize
    need = potrf_interleaved.local_bytes(n, itemsize, width) + _SLACK_BYTES
    wide = DType(dtype).real is DType.FLOAT64
    return (
        need <= device.local_mem_bytes
        and width <= device.max_work_group
        and (device.has_fp64 or not wide)
    )


def potrf_scratch(
    batch: int, n: int, dtype: str, width: int, device: Device
) -> Layout | None:
    """Return what `potrf` needs: a whole group's arrays for fewer matrices."""
    threads = _threads(n, dtype, width, device)
    return partial(_group, n, dtype, threads) if batch < threads else None


def _group(n: int, dtype: str, threads: int, allocate: Allocate) -> tuple[Any, ...]:
    shape = (threads, n, n)
    return allocate(shape, dtype), allocate(shape, dtype), allocate((threads,), "int32")


def potrf(
    arrays: Sequence[Any],
    uplo: str,
    width: int,
    device: Device,
    scratch: Sequence[Any],
) -> None:
    """Factor a stack of USM memory on its queue, and wait for it.

    Parameters
    ----------
    arrays : sequence of dpnp.ndarray
        The stack, shape (batch, n, n); its factor; its info, shape (batch,). All
        C-contiguous and on one queue.
    uplo : {"L", "U"}
    width : int
        Matrices of a work-group, at least.
    device : Device
        Of the arrays; `fits` has accepted it.
    scratch : sequence of dpnp.ndarray
        What `potrf_scratch` asks for.

    Raises
    ------
    ValueError
        If the device has too little work-group memory, or no groups of this size.
    """
    n, dtype = arrays[0].shape[-1], arrays[0].dtype.name
    if not fits(n, dtype, width, device):
        message = f"{width} {dtype} matrices of order {n} exceed a group of {device}"
        raise ValueError(message)
    threads = _threads(n, dtype, width, device)
    rendered = _rendered(n, dtype, uplo, threads)
    if len(arrays[0]) < threads:
        _launch_padded(rendered, arrays, scratch)
    else:
        _launch(rendered, arrays)


def _threads(n: int, dtype: str, width: int, device: Device) -> int:
    """Return the threads of a work-group: the width doubled while they fit."""
    threads = width
    while 2 * threads <= _MOST_THREADS and fits(n, dtype, 2 * threads, device):
        threads *= 2
    return threads


@lru_cache(maxsize=512)
def _rendered(n: int, dtype: str, uplo: str, threads: int) -> Rendered:
    kernel = potrf_interleaved.potrf(n, DType(dtype), uplo, threads)
    scheduler = Scheduler(kernel, DPEX)
    scheduler.convert_loop_to_global()
    return render(scheduler.get_optimized_ast(kernel.info.name), DPEX)


def _launch(rendered: Rendered, arrays: Sequence[Any]) -> None:
    launch_dpex(rendered, [len(arrays[0]), *(_flat(array) for array in arrays)])


def _flat(array: Any) -> Any:
    """Return the memory of an array as the kernel sees it: pairs of reals if complex.

    dpnp's own constructor cannot view one dtype as another at an offset.
    """
    import dpnp
    from dpctl import tensor

    usm = array.get_array()
    facts = usm.__sycl_usm_array_interface__
    parts = 2 if array.dtype.kind == "c" else 1
    real = np.dtype(f"{array.dtype.kind.replace('c', 'f')}{array.itemsize // parts}")
    flat = tensor.usm_ndarray(
        (parts * array.size,),
        dtype=real,
        buffer=usm.usm_data,
        offset=parts * facts["offset"],
    )
    return dpnp.asarray(flat)


def _launch_padded(
    rendered: Rendered, arrays: Sequence[Any], padded: Sequence[Any]
) -> None:
    """Launch for a batch smaller than a group, through memory of a group's size."""
    import dpnp

    batch, n = len(arrays[0]), arrays[0].shape[-1]
    padded[0][:batch] = arrays[0]
    identity = dpnp.eye(n, dtype=arrays[0].dtype, sycl_queue=arrays[0].sycl_queue)
    padded[0][batch:] = identity
    _launch(rendered, padded)
    for array, whole in zip(arrays[1:], padded[1:], strict=True):
        array[...] = whole[:batch]
