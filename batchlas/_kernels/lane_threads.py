"""The family ``lane`` by numba-dpex on GPUs: one matrix per thread.

Decided here: how many threads a work-group has.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from batchlas._kernels import potrf_interleaved
from batchlas._kernels.kinds import DType
from batchlas._kernels.work_items import render_items

if TYPE_CHECKING:
    from batchlas._kernels.render import Rendered
    from batchlas._runtime.devices import Device

# What the runtimes take of the work-group memory for themselves; beyond the rest a
# kernel does not run, and nobody says so.
_SLACK_BYTES = 256
# More threads than this made no kernel faster.
_MOST_THREADS = 16


def fits(n: int, dtype: str, width: int, device: Device) -> bool:
    """Whether a work-group of `width` matrices of order `n` runs on a device."""
    itemsize = np.dtype(dtype).itemsize
    need = potrf_interleaved.local_bytes(n, itemsize, width) + _SLACK_BYTES
    return need <= device.local_mem_bytes and width <= device.max_work_group


def threads_of(n: int, dtype: str, width: int, device: Device) -> int:
    """Return the threads of a work-group: the width doubled while they fit."""
    threads = width
    while 2 * threads <= _MOST_THREADS and fits(n, dtype, 2 * threads, device):
        threads *= 2
    return threads


@lru_cache(maxsize=512)
def rendered(n: int, dtype: str, uplo: str, threads: int) -> Rendered:
    """Return the kernel; the last group takes the end of any batch by itself."""
    return render_items(potrf_interleaved.potrf(n, DType(dtype), uplo, threads))
