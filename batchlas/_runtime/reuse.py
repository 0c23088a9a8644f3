"""Memory of results that the caller has dropped, kept for the next results.

Fresh pages have to be zeroed by the operating system when they are first written: for
the 24 MB factor of 3 million float64 elements that takes 1 ms, as long as the fastest
kernels compute. A block goes back to the pool when the last array on it is gone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from batchlas._runtime.forks import Lock
from batchlas._runtime.state import process_wide

# Smaller memory comes from malloc, which keeps it itself.
SMALLEST_BYTES = 2**20
MOST_KEPT_BYTES = 2**26
# A kept block may be this much larger than what is asked for.
SLACK = 1.25


class _Lease:
    """Owns a block for the arrays that view it; what NumPy calls their base."""

    def __init__(self, block: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        self._block = block
        self.__array_interface__ = block.__array_interface__

    def __del__(self) -> None:
        _pool.give_back(self._block)


class _Pool:
    """Blocks without arrays, the latest last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._blocks: list[np.ndarray[Any, np.dtype[np.uint8]]] = []

    def take(self, count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return a block of at least `count` bytes."""
        with self._lock:
            for at in reversed(range(len(self._blocks))):
                if count <= self._blocks[at].size <= SLACK * count:
                    return self._blocks.pop(at)
        return np.empty(count, np.uint8)

    def give_back(self, block: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Keep a block, and drop the oldest ones beyond the limit."""
        with self._lock:
            self._blocks.append(block)
            while sum(each.size for each in self._blocks) > MOST_KEPT_BYTES:
                self._blocks.pop(0)


_pool = process_wide("reuse", _Pool)


def reused_bytes(count: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Return `count` uninitialised bytes, on kept memory where there is some."""
    if count < SMALLEST_BYTES:
        return np.empty(count, np.uint8)
    return np.asarray(_Lease(_pool.take(count)))[:count]
