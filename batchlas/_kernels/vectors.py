"""Kernels of one matrix per vector lane: compiled for a queue, launched on stacks.

Decided here: how such a kernel is scheduled, how a batch that is no multiple of the
lanes is launched, and what scratch that takes. A kernel's arguments are the batch, its
other scalars, and the addresses of its arrays: the input first, the status of each
matrix last.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._backends.numpy import empty

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from batchlas._kernels.ir import Kernel
    from batchlas._kernels.target import Renderer
    from batchlas._runtime.lease import Allocate, Layout

    # Runs a compiled kernel with its arguments in order, and waits for it.
    Launch = Callable[[Sequence[Any]], None]


def compile_vectors(queue: Any, kernel: Kernel, width: int) -> Launch:
    """Return a kernel compiled, its axis ``b`` as vectors of `width` lanes."""
    from batchlas._kernels.compile import compile_opencl, launch_opencl
    from batchlas._kernels.render import Passing, render
    from batchlas._kernels.target import OPENCL

    optimised = schedule_vectors(kernel, width, OPENCL)
    compiled = compile_opencl(render(optimised, OPENCL, Passing.ADDRESS), queue)
    return partial(launch_opencl, compiled, queue)


def schedule_vectors(kernel: Kernel, width: int, target: Renderer) -> Kernel:
    """Return a kernel with its axis ``b`` as vectors of `width` lanes."""
    from batchlas._kernels.driver import apply_asked
    from batchlas._kernels.options import Split, Target
    from batchlas._kernels.schedule import Scheduler

    scheduler = Scheduler(kernel, target)
    scheduler.convert_loop_to_global()
    batch = [axis.name for axis in scheduler.rngs()].index("b")
    apply_asked(scheduler, (Split(batch, width, Target.VECTOR),))
    return scheduler.get_optimized_ast(kernel.info.name)


def vector_scratch(
    batch: int, width: int, parts: Sequence[tuple[tuple[int, ...], str]]
) -> Layout | None:
    """Return what `launch_vectors` needs: a whole vector's arrays for fewer matrices.

    Parameters
    ----------
    batch, width : int
        Matrices of the stack, and per vector.
    parts : sequence of (shape, dtype)
        What each array has for one matrix.
    """
    return partial(_vector, width, tuple(parts)) if batch < width else None


def _vector(
    width: int, parts: Sequence[tuple[tuple[int, ...], str]], allocate: Allocate
) -> tuple[Any, ...]:
    return tuple(allocate((width, *shape), dtype) for shape, dtype in parts)


def launch_vectors(
    kernel: Launch,
    arrays: Sequence[NDArray[Any]],
    width: int,
    scalars: Sequence[float] = (),
    scratch: Sequence[NDArray[Any]] | None = None,
) -> bool:
    """Run a kernel on a stack and its results, and wait for it.

    Parameters
    ----------
    kernel : callable
        From `compile_vectors` with the same width.
    arrays : sequence of ndarray
        The input stack, the results, and the status of each matrix, 0 if it is good;
        all with the batch as their first axis and C-contiguous.
    width : int
        Matrices per vector.
    scalars : sequence of number, optional
        The kernel's scalars after the batch.
    scratch : sequence of ndarray, optional
        What `vector_scratch` asks for; without it, memory is allocated as needed.

    Returns
    -------
    bool
        Whether a matrix failed.
    """
    for part in parts_of(len(arrays[0]), width):
        views = tuple(array[part] for array in arrays)
        if len(views[0]) < width:
            padded = scratch or [
                empty((width, *x.shape[1:]), x.dtype, x) for x in views
            ]
            _launch_padded(kernel, views, padded, scalars)
        else:
            _launch(kernel, views, scalars)
    # max() reads integers at twice the speed of any()
    return bool(arrays[-1].max())


def parts_of(batch: int, width: int) -> list[slice]:
    """Return the parts of a batch to launch: whole vectors, then the last vector.

    The last vector begins where it ends with the batch, so it computes some matrices
    for the second time, with the same results: a matrix's result does not depend on
    its lane.
    """
    whole = batch // width * width
    if whole in (0, batch):
        return [slice(0, batch)]
    return [slice(0, whole), slice(batch - width, batch)]


def _launch(
    kernel: Launch, arrays: Sequence[NDArray[Any]], scalars: Sequence[float]
) -> None:
    addresses = (array.ctypes.data for array in arrays)
    kernel([len(arrays[0]), *scalars, *addresses])


def _launch_padded(
    kernel: Launch,
    arrays: Sequence[NDArray[Any]],
    padded: Sequence[NDArray[Any]],
    scalars: Sequence[float],
) -> None:
    """Launch for a batch smaller than one vector, through memory of a vector's size."""
    batch = len(arrays[0])
    padded[0][:batch] = arrays[0]
    padded[0][batch:] = np.eye(*arrays[0].shape[1:], dtype=arrays[0].dtype)
    _launch(kernel, padded, scalars)
    for array, whole in zip(arrays[1:], padded[1:], strict=True):
        array[...] = whole[:batch]
