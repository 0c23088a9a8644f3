"""A search over schedules, by timing: ``python -m batchlas tune --search``.

From the best legal value of a family's knob a beam search tries every other legal move.
Each schedule is checked on every matrix before it is timed. What comes out is for the
author of a kernel: a knob value that wins and is no candidate should become one, a
schedule that wins should become the driver's.
"""

from __future__ import annotations

import math
import time
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from batchlas._backends.numpy import empty
from batchlas._kernels.compile import CompileError, compile_opencl, launch_opencl
from batchlas._kernels.options import format_schedule
from batchlas._kernels.render import Passing, render
from batchlas._kernels.search import beam_search
from batchlas._kernels.target import OPENCL
from batchlas._runtime.sycl import host_queue, why_no_queue
from batchlas.tune.grid import saturating
from batchlas.tune.problems import PROBLEMS, is_right
from batchlas.tune.searchable import SEARCHABLE, Searchable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from batchlas._kernels.schedule import Scheduler
    from batchlas._select import OpSpec

BEAM = 2
_PASSES = 9
_FINALISTS = 5


class Found(NamedTuple):
    """A schedule with its time."""

    ms: float
    spelling: str
    schedule: str


class Bench:
    """Times schedules of one kernel on one stack, until the time is up.

    Parameters
    ----------
    searchable : Searchable
    call : NamedTuple
        The table key of the stack.
    queue : dpctl.SyclQueue
        Of a CPU device that shares the process's memory.
    budget_s : float
    """

    def __init__(
        self, searchable: Searchable, call: Any, queue: Any, budget_s: float
    ) -> None:
        self._searchable, self._call, self._queue = searchable, call, queue
        self._problem = PROBLEMS[searchable.op]
        self._end = time.monotonic() + budget_s
        self._stack = self._problem.make(call, np.random.default_rng(0))
        stack = self._stack
        self._factor = empty(stack.shape, stack.dtype, stack)
        self._info = np.empty(call.batch, np.int32)
        self._launches: dict[tuple[str, str], Callable[[], None]] = {}
        self._times: dict[tuple[str, str], float] = {}

    def run(self) -> list[Found]:
        """Return what was found, fastest first, the best timed once more in turns."""
        searchable, call = self._searchable, self._call
        knobs = [
            (self._ms(k, searchable.spelling(amount)), amount, k)
            for amount, k in searchable.schedulers(call.n, call.dtype)
        ]
        if knobs:
            _, amount, best = min(knobs, key=lambda each: each[:2])
            name = searchable.spelling(amount)
            beam_search(best, lambda k: self._ms(k, name), BEAM)
        finalists = sorted(self._times, key=self._times.__getitem__)[:_FINALISTS]
        return sorted(Found(ms, *name) for name, ms in self._final(finalists))

    def _ms(self, k: Scheduler, spelling: str) -> float:
        """Return the time of a schedule, infinite if it is wrong or time is up."""
        if time.monotonic() > self._end:
            return math.inf
        name = spelling, format_schedule(tuple(k.applied_opts()))
        launch = self._compiled(k)
        if launch is None:
            return math.inf
        self._launches[name] = launch
        self._times[name] = median(_time(launch) for _ in range(_PASSES))
        return self._times[name]

    def _compiled(self, k: Scheduler) -> Callable[[], None] | None:
        """Return a schedule's launch, None if it does not compile or is wrong."""
        try:
            rendered = render(k.copy().get_optimized_ast(), OPENCL, Passing.ADDRESS)
            kernel = compile_opencl(rendered, self._queue)
        except (CompileError, ValueError):
            return None  # legal, but more than this device or printer has
        arrays = (self._stack, self._factor, self._info)
        values = [len(self._stack), *(each.ctypes.data for each in arrays)]
        self._factor.fill(np.nan)
        launch_opencl(kernel, self._queue, values)
        right = is_right(self._problem, self._call, self._stack, [self._factor])
        return partial(launch_opencl, kernel, self._queue, values) if right else None

    def _final(
        self, names: list[tuple[str, str]]
    ) -> Iterator[tuple[tuple[str, str], float]]:
        """Yield the medians of schedules that take turns."""
        times: dict[tuple[str, str], list[float]] = {name: [] for name in names}
        for turn in range(2 * _PASSES):
            for name in names if turn % 2 else reversed(names):
                self._launches[name]()  # the one before has emptied the caches
                times[name].append(_time(self._launches[name]))
        yield from ((name, median(each)) for name, each in times.items())


def _time(launch: Callable[[], None]) -> float:
    start = time.perf_counter()
    launch()
    return (time.perf_counter() - start) * 1e3


def search(
    specs: Iterable[OpSpec],
    dtypes: Sequence[str],
    orders: Sequence[int],
    budget_s: float,
) -> Iterator[str]:
    """Yield what the search finds for every op, dtype and order, as lines of text.

    Raises
    ------
    RuntimeError
        If the host's processor runs no kernels.
    """
    queue = host_queue()
    if queue is None:
        message = f"no kernels to search: {why_no_queue()}"
        raise RuntimeError(message)
    known = {each.op for each in SEARCHABLE}
    todo = [
        (spec, PROBLEMS[spec.op].call(dtype, "numpy", "L", n, saturating(n, dtype)))
        for spec in specs
        if spec.op in known
        for dtype in dtypes
        for n in orders
    ]
    for spec, call in todo:
        names = tuple(str(each) for each in spec.candidates(call.dtype, "numpy"))
        yield from search_lines(spec.op, call, queue, names, budget_s / len(todo))


def search_lines(
    op: str, call: Any, queue: Any, candidates: tuple[str, ...], budget_s: float
) -> Iterator[str]:
    """Yield the best schedules of an op's families at one shape as text."""
    mine = [each for each in SEARCHABLE if each.op == op]
    for searchable in mine:
        found = Bench(searchable, call, queue, budget_s / len(mine)).run()
        yield f"{op} {call.dtype} n={call.n} batch={call.batch}: {len(found)} schedules"
        for each in found:
            mark = "" if each.spelling in candidates else "  (not a candidate)"
            yield f"  {each.ms:9.4g} ms  {each.spelling}  {each.schedule}{mark}"
