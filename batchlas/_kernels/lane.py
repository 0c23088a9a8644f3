"""The family ``lane``: one matrix per vector lane, on CPU devices of SYCL.

Decided here: how a kernel is scheduled, what is compiled when, how a batch that is no
multiple of the lanes is launched, and what scratch that takes. Kernels are compiled
once per order, dtype, triangle and width, and kept for the life of the process.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels.limits import require_private_memory
from batchlas._runtime.dtypes import NAME_OF

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from batchlas._runtime.lease import Allocate, Layout

    # Runs a compiled kernel with its arguments in order, and waits for it.
    Launch = Callable[[Sequence[Any]], None]


def potrf_scratch(batch: int, n: int, dtype: str, width: int) -> Layout | None:
    """Return what `potrf` needs: a whole vector's arrays for fewer matrices."""
    return partial(_vector, n, dtype, width) if batch < width else None


def _vector(n: int, dtype: str, width: int, allocate: Allocate) -> tuple[Any, ...]:
    shape = (width, n, n)
    return allocate(shape, dtype), allocate(shape, dtype), allocate((width,), "int32")


def potrf(
    queue: Any,
    arrays: Sequence[NDArray[Any]],
    uplo: str,
    width: int,
    scratch: Sequence[NDArray[Any]],
) -> bool:
    """Factor a stack in the host's memory on a CPU queue, and wait for it.

    Parameters
    ----------
    queue : dpctl.SyclQueue
        Of a CPU device that shares the process's memory.
    arrays : sequence of ndarray
        The stack, shape (batch, n, n); its factor; its info, shape (batch,). All
        C-contiguous; the factor begins at a cache line.
    uplo : {"L", "U"}
    width : int
        Matrices per vector.
    scratch : sequence of ndarray
        What `potrf_scratch` asks for.

    Returns
    -------
    bool
        Whether a matrix failed.

    Raises
    ------
    ValueError
        For matrices that are too large for this family.
    """
    stack = arrays[0]
    dtype = NAME_OF[stack.dtype.char]
    require_private_memory(stack.shape[-1], dtype, width)
    kernel = _potrf_kernel(queue, stack.shape[-1], dtype, uplo, width)
    for part in _launches(len(stack), width):
        views = tuple(array[part] for array in arrays)
        if len(views[0]) < width:
            _launch_padded(kernel, views, scratch)
        else:
            _launch(kernel, views)
    # max() reads integers at twice the speed of any()
    failed = bool(arrays[2].max())
    if failed:
        _count_minors(arrays[1], arrays[2])
    return failed


def _count_minors(factor: NDArray[Any], info: NDArray[np.int32]) -> None:
    """Replace the kernel's mark by the order of the first minor that failed."""
    failed = np.flatnonzero(info)
    roots = np.diagonal(factor, axis1=-2, axis2=-1)[failed].real
    bad = ~((roots > 0) & (roots < np.inf))
    info[failed] = 1 + bad.argmax(axis=-1)


def _launches(batch: int, width: int) -> list[slice]:
    """Return the parts of a batch to launch: whole vectors, then the last vector.

    The last vector begins where it ends with the batch, so it computes some matrices
    for the second time, with the same results: a matrix's result does not depend on
    its lane.
    """
    whole = batch // width * width
    if whole in (0, batch):
        return [slice(0, batch)]
    return [slice(0, whole), slice(batch - width, batch)]


def _launch(kernel: Launch, arrays: Sequence[NDArray[Any]]) -> None:
    kernel([len(arrays[0]), *(array.ctypes.data for array in arrays)])


def _launch_padded(
    kernel: Launch, arrays: Sequence[NDArray[Any]], padded: Sequence[NDArray[Any]]
) -> None:
    """Launch for a batch smaller than one vector, through memory of a vector's size."""
    batch = len(arrays[0])
    padded[0][:batch] = arrays[0]
    padded[0][batch:] = np.eye(arrays[0].shape[-1], dtype=arrays[0].dtype)
    _launch(kernel, padded)
    for array, whole in zip(arrays[1:], padded[1:], strict=True):
        array[...] = whole[:batch]


@lru_cache(maxsize=512)
def _potrf_kernel(queue: Any, n: int, dtype: str, uplo: str, width: int) -> Launch:
    """Return the compiled kernel; the batch axis becomes vectors of `width` lanes.

    The compiler is imported by the first call that needs it, since it takes longer to
    import than all else.
    """
    from batchlas._kernels import potrf as potrf_kernel
    from batchlas._kernels.compile import compile_opencl, launch_opencl
    from batchlas._kernels.driver import apply_asked
    from batchlas._kernels.kinds import DType
    from batchlas._kernels.options import Split, Target
    from batchlas._kernels.render import Passing, render
    from batchlas._kernels.schedule import Scheduler
    from batchlas._kernels.target import OPENCL

    kind = DType(dtype)
    run = width // 2 if kind.is_complex else width
    kernel = potrf_kernel.potrf(n, kind, uplo, run, width)
    scheduler = Scheduler(kernel, OPENCL)
    scheduler.convert_loop_to_global()
    batch = [axis.name for axis in scheduler.rngs()].index("b")
    apply_asked(scheduler, (Split(batch, width, Target.VECTOR),))
    optimised = scheduler.get_optimized_ast(kernel.info.name)
    compiled = compile_opencl(render(optimised, OPENCL, Passing.ADDRESS), queue)
    return partial(launch_opencl, compiled, queue)
