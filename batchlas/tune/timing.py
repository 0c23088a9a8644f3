"""One cell: every candidate, pinned, checked on every matrix, then timed in turns.

Candidates take turns in an order that rotates, and every other pass runs backwards, so
that a machine that slows down slows all of them down. The median is what is kept.
"""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._select import ScopedPin
from batchlas.tune.problems import PROBLEMS, is_right, placer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._select import Family, OpSpec

# A candidate this many times slower than the best after its first run is not timed on.
_HOPELESS = 8.0


def time_cell(
    spec: OpSpec,
    call: Any,
    candidates: Sequence[Family],
    *,
    budget_s: float = 0.25,
    least_passes: int = 3,
) -> dict[str, float | None]:
    """Time the candidates of one table key.

    Parameters
    ----------
    spec : OpSpec
    call : NamedTuple
        The table key; random input is made for it.
    candidates : sequence of Family
        Those that can run the call.
    budget_s : float
        Seconds to spend, more or less, beyond the first run of each.
    least_passes : int
        Timed runs of each candidate whatever the budget.

    Returns
    -------
    dict
        Spelling -> milliseconds of the whole call, or None for a wrong result.
    """
    problem = PROBLEMS[spec.op]
    host = problem.make(call, np.random.default_rng(0))
    a = placer(call.array)(host)
    times: dict[str, list[float]] = {}
    result: dict[str, float | None] = {}
    for choice in candidates:
        outputs, _ = _run(spec, choice, call, a)  # compiles what has to be compiled
        if is_right(problem, call, host, [_host(call.array, each) for each in outputs]):
            times[str(choice)] = [_run(spec, choice, call, a)[1]]
        else:
            result[str(choice)] = None
    best = min((each[0] for each in times.values()), default=0.0)
    racing = [
        c for c in candidates if times.get(str(c), [np.inf])[0] < _HOPELESS * best
    ]
    _race(spec, call, a, racing, times, budget_s, least_passes)
    return {**{name: median(each) for name, each in times.items()}, **result}


def _race(
    spec: OpSpec,
    call: Any,
    a: Any,
    racing: list[Family],
    times: dict[str, list[float]],
    budget_s: float,
    least_passes: int,
) -> None:
    """Add timed runs in turns until the budget is spent."""
    end = time.perf_counter() + budget_s
    passes = 0
    while racing and (passes < least_passes or time.perf_counter() < end):
        for choice in racing if passes % 2 else reversed(racing):
            times[str(choice)].append(_run(spec, choice, call, a)[1])
        racing.append(racing.pop(0))
        passes += 1
        if passes > 200:
            return


def _run(
    spec: OpSpec, choice: Family, call: Any, a: Any
) -> tuple[tuple[Any, ...], float]:
    """Return results and milliseconds of one pinned call, waiting for its device."""
    with ScopedPin(spec.op, str(choice)):
        start = time.perf_counter()
        outputs = PROBLEMS[spec.op].run(call, a)
        _wait(call.array, outputs)
        return outputs, (time.perf_counter() - start) * 1e3


def _wait(kind: str, outputs: tuple[Any, ...]) -> None:
    if kind == "dpnp":
        outputs[0].sycl_queue.wait()
    elif kind == "cupy":
        import cupy

        cupy.cuda.get_current_stream().synchronize()


def _host(kind: str, a: Any) -> Any:
    return a if kind == "numpy" else a.asnumpy() if kind == "dpnp" else a.get()
