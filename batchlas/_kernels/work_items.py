"""Kernels of one matrix, or one vector of them, per work-item: run by numba-dpex.

A kernel's arguments are the batch, its other scalars, and its arrays, the input first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels.compile import launch_dpex
from batchlas._kernels.render import render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import DPEX
from batchlas._kernels.vectors import schedule_vectors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.ir import Kernel
    from batchlas._kernels.render import Rendered


def render_items(kernel: Kernel) -> Rendered:
    """Return the text of a kernel, its outermost independent axes across the launch."""
    scheduler = Scheduler(kernel, DPEX)
    scheduler.convert_loop_to_global()
    return render(scheduler.get_optimized_ast(kernel.info.name), DPEX)


def render_vectors(kernel: Kernel, width: int) -> Rendered:
    """Return the text of a kernel, its axis ``b`` as vectors of `width` lanes."""
    return render(schedule_vectors(kernel, width, DPEX), DPEX)


def launch_items(
    rendered: Rendered, arrays: Sequence[Any], scalars: Sequence[Any] = ()
) -> None:
    """Run a kernel on dpnp arrays of one queue, C-contiguous, and wait for it."""
    memory = (flat(array) for array in arrays)
    launch_dpex(rendered, [len(arrays[0]), *scalars, *memory])


def flat(array: Any) -> Any:
    """Return the memory of an array as the kernel sees it: pairs of reals if complex.

    It stays dpctl's array: to wrap it in one of dpnp takes longer than to make it.
    """
    from dpctl import tensor

    usm = array.get_array()
    facts = usm.__sycl_usm_array_interface__
    parts = 2 if array.dtype.kind == "c" else 1
    real = np.dtype(f"{array.dtype.kind.replace('c', 'f')}{array.itemsize // parts}")
    return tensor.usm_ndarray(
        (parts * array.size,),
        dtype=real,
        buffer=usm.usm_data,
        offset=parts * facts["offset"],
    )
