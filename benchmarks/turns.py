"""How the benchmarks of this folder time two sides: in turns, in one process.

A turn is several calls. Those of its first 50 ms do not count, at least one: the
threads of BLAS spin for some 20 ms after a call, on the cores that the next side needs,
and cores that had nothing to do wake slowly.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import threadpoolctl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Call = Callable[[Any], object]

_WARM_S = 0.05


def turn(
    call: Call, a: Any, calls: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the seconds of each of `calls` calls, after those that do not count."""
    warm = time.perf_counter() + _WARM_S
    call(a)
    while time.perf_counter() < warm:
        call(a)
    seconds = []
    for _ in range(calls):
        start = clock()
        call(a)
        seconds.append(clock() - start)
    return seconds


def race(
    ours: Sequence[Call], theirs: Call, a: Any, turns: int, calls: int
) -> list[list[float]]:
    """Return seconds of each of ours, then of theirs on one BLAS thread and on all."""
    for call in ours:
        call(a)
        call(a)
    times: list[list[float]] = [[] for _ in range(len(ours) + 2)]
    for _ in range(turns):
        for call, record in zip(ours, times, strict=False):
            record.extend(turn(call, a, calls))
        with threadpoolctl.threadpool_limits(1, "blas"):
            times[-2].extend(turn(theirs, a, calls))
        times[-1].extend(turn(theirs, a, calls))
    return times
