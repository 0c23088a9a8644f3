"""The memory floor: what reading the input and writing the results costs at least."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from batchlas.bench.functions import Function
    from batchlas.tune.targets import Target

_COPIES = 7


def floor_ms(
    target: Target, function: Function, shape: Sequence[int], dtype: str
) -> float:
    """Return the time to copy half as many bytes as a call must move, by median.

    A copy reads each byte once and writes it once. On the host the better of one
    thread and two counts.
    """
    moved = function.moved_bytes(shape, dtype)
    source = target.place(np.ones(max(1, moved // 2), np.uint8))
    if target.device.kind == "numpy":
        return min(_time(each) for each in _host_copies(source))
    copied = source.copy()

    def copy() -> None:
        copied[...] = source
        target.wait(copied)

    return _time(copy)


def _host_copies(source: Any) -> list[Callable[[], object]]:
    copied = np.empty_like(source)
    half = len(source) // 2
    parts = [(copied[:half], source[:half]), (copied[half:], source[half:])]
    pool = ThreadPoolExecutor(2)

    def by_two() -> None:
        list(pool.map(lambda part: np.copyto(*part), parts))

    return [partial(np.copyto, copied, source), by_two]


def _time(copy: Callable[[], object]) -> float:
    copy()
    times = []
    for _ in range(_COPIES):
        start = time.perf_counter()
        copy()
        times.append((time.perf_counter() - start) * 1e3)
    return median(times)
