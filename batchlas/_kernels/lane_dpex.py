"""The family ``lane`` by numba-dpex, on dpnp arrays.

On a CPU device the kernel is that of `lane`: one matrix per lane of a vector. Vectors
would be slow on a GPU, which reads fast only what its threads read side by side; there
one thread has one matrix (`lane_threads`).

Decided here: which of the two runs, how a batch smaller than a vector or a work-group
is launched, and what scratch that takes. Kernels are compiled once per order, dtype,
triangle and vector or group, and kept for the life of the process.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from batchlas._kernels import lane_threads
from batchlas._kernels import potrf as potrf_vectors
from batchlas._kernels.kinds import DType
from batchlas._kernels.lane import count_minors
from batchlas._kernels.limits import fits_in_private_memory
from batchlas._kernels.vectors import parts_of
from batchlas._kernels.work_items import launch_items, render_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.render import Rendered
    from batchlas._runtime.devices import Device
    from batchlas._runtime.lease import Allocate, Layout


def fits(n: int, dtype: str, width: int, device: Device) -> bool:
    """Whether `width` matrices of order `n` are factored together on a device."""
    if DType(dtype).real is DType.FLOAT64 and not device.has_fp64:
        return False
    if _has_vectors(device):
        return fits_in_private_memory(n, dtype, width)
    return lane_threads.fits(n, dtype, width, device)


def _has_vectors(device: Device) -> bool:
    return device.family == "cpu"


def potrf_scratch(
    batch: int, n: int, dtype: str, width: int, device: Device
) -> Layout | None:
    """Return what `potrf` needs: the arrays of a whole group for fewer matrices."""
    least = _together(n, dtype, width, device)
    return partial(_group, n, dtype, least) if batch < least else None


def _group(n: int, dtype: str, batch: int, allocate: Allocate) -> tuple[Any, ...]:
    shape = (batch, n, n)
    return allocate(shape, dtype), allocate(shape, dtype), allocate((batch,), "int32")


def _together(n: int, dtype: str, width: int, device: Device) -> int:
    """Return how many matrices a launch has at least: a vector's, or a group's."""
    if _has_vectors(device):
        return width
    return lane_threads.threads_of(n, dtype, width, device)


def potrf(
    arrays: Sequence[Any],
    uplo: str,
    width: int,
    device: Device,
    scratch: Sequence[Any],
) -> bool:
    """Factor a stack of USM memory on its queue, and wait for it.

    Parameters
    ----------
    arrays : sequence of dpnp.ndarray
        The stack, shape (batch, n, n); its factor; its info, shape (batch,). All
        C-contiguous and on one queue; the factor begins at a cache line.
    uplo : {"L", "U"}
    width : int
        Matrices of a vector, or of a work-group at least.
    device : Device
        Of the arrays; `fits` has accepted it.
    scratch : sequence of dpnp.ndarray
        What `potrf_scratch` asks for.

    Returns
    -------
    bool
        Whether a matrix failed.

    Raises
    ------
    ValueError
        If the device cannot factor so many matrices together.
    """
    n, dtype = arrays[0].shape[-1], arrays[0].dtype.name
    if not fits(n, dtype, width, device):
        message = f"{width} {dtype} matrices of order {n} are too many together"
        raise ValueError(message)
    together = _together(n, dtype, width, device)
    vectors = _has_vectors(device)
    rendered = (_in_vectors if vectors else lane_threads.rendered)(
        n, dtype, uplo, together
    )
    if len(arrays[0]) < together:
        _launch_padded(rendered, arrays, scratch)
    elif vectors:
        for part in parts_of(len(arrays[0]), together):
            launch_items(rendered, [array[part] for array in arrays])
    else:
        launch_items(rendered, arrays)
    return _failed(*arrays[1:], counted=not vectors)


@lru_cache(maxsize=512)
def _in_vectors(n: int, dtype: str, uplo: str, width: int) -> Rendered:
    kind = DType(dtype)
    run = width // 2 if kind.is_complex else width
    return render_vectors(potrf_vectors.potrf(n, kind, uplo, run, width), width)


def _launch_padded(
    rendered: Rendered, arrays: Sequence[Any], padded: Sequence[Any]
) -> None:
    """Launch for a batch smaller than a group, through memory of a group's size."""
    import dpnp

    batch, n = len(arrays[0]), arrays[0].shape[-1]
    padded[0][:batch] = arrays[0]
    identity = dpnp.eye(n, dtype=arrays[0].dtype, sycl_queue=arrays[0].sycl_queue)
    padded[0][batch:] = identity
    launch_items(rendered, padded)
    for array, whole in zip(arrays[1:], padded[1:], strict=True):
        array[...] = whole[:batch]


def _failed(factor: Any, info: Any, *, counted: bool) -> bool:
    """Return whether a matrix failed; of one whose minors are not counted, count them.

    Those are of a kernel in vectors, on a CPU device.
    """
    from batchlas._backends import any_failed, in_host_memory
    from batchlas._backends import dpnp as backend

    failed = any_failed(backend, info)
    if failed and not counted:
        views = (in_host_memory(backend, array) for array in (factor, info))
        count_minors(*views)
    return failed
