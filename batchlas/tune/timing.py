"""One cell: every candidate, pinned, checked on every matrix, then timed in turns.

Candidates take turns in an order that rotates, and every other pass runs backwards, so
that a machine that slows down slows all of them down. A turn's first call does not
count where calls are short: BLAS threads spin for some time after a call, on the cores
that the next candidate needs. Short calls are timed in loops. The median is what is
kept; where it still moves when the time is up, the race goes on once more.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._select import ScopedPin
from batchlas.tune.problems import PROBLEMS, is_right
from batchlas.tune.targets import checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from batchlas._select import Family
    from batchlas.tune.grid import Cell

HOPELESS = 10.0
"""A candidate this many times slower than the best so far is dropped."""
SLOW = "too slow"
"""How the note on a dropped candidate begins."""
_PROBE = 16
"""A candidate first runs this part of a batch: if that alone is hopeless, so is it."""
_LEAST_MS = 0.3  # of a sample: shorter calls are timed several at once
_SPIN_MS = 20.0  # longer calls do not feel what the one before left running
_SLOW_MS = 1000.0  # calls that are timed as few times as can be
_TOO_SLOW_MS = 5000.0  # calls that are not run for a second look
_MOST_PASSES = 200
_STEADY = 1.1  # between the medians of both halves


@dataclass(slots=True)
class Timing:
    """What became of a cell's candidates.

    Attributes
    ----------
    times : dict of str to float or None
        Milliseconds of the whole call by spelling; None for one that has no time.
    notes : dict of str to str
        Why a candidate has no time.
    """

    times: dict[str, float | None] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def drop(self, choice: Family, why: str) -> None:
        """Say why a candidate has no time."""
        self.times[str(choice)], self.notes[str(choice)] = None, why


@dataclass(slots=True)
class _Racer:
    """A candidate in the race, with what one call of it took, and its samples."""

    choice: Family
    ms: float
    samples: list[float] = field(default_factory=list)

    @property
    def loops(self) -> int:
        return max(1, min(50, round(_LEAST_MS / max(self.ms, 1e-3))))


def time_cell(
    cell: Cell,
    candidates: Iterable[Family],
    *,
    budget_s: float = 0.1,
    expected: Mapping[str, float] | None = None,
    forecast: Mapping[str, float] | None = None,
) -> Timing:
    """Time the candidates of one table key.

    Parameters
    ----------
    cell : Cell
        Op, device and table key; random input is made for it.
    candidates : sequence of Family
        Those that can run the call.
    budget_s : float
        Seconds to spend, more or less, beyond the first runs of each.
    expected : mapping of str to float, optional
        What they took elsewhere: the fastest goes first, so that hopeless ones are
        known early.
    forecast : mapping of str to float, optional
        Milliseconds that they will take at least; what is hopeless by that and takes
        seconds is not run at all.
    """
    likely, least = expected or {}, forecast or {}
    ordered = sorted(candidates, key=lambda c: likely.get(str(c), np.inf))
    rng = cell.target.maths.random.default_rng(0)
    made = PROBLEMS[cell.spec.op].make(cell.call, rng)
    a = cell.target.place(made)
    result = Timing()
    racers: list[_Racer] = []
    for choice in ordered:
        best = min((racer.ms for racer in racers), default=np.inf)
        try:
            _check_forecast(least.get(str(choice), 0.0), HOPELESS * best)
            ms = _enter(cell, choice, (made, a), HOPELESS * best)
        except _DroppedError as dropped:
            result.drop(choice, str(dropped))
        except Exception as error:  # noqa: BLE001 - a broken kernel is not the tuner's
            result.drop(choice, f"{type(error).__name__}: {error}"[:300])
        else:
            racers.append(_Racer(choice, ms))
    best = min((racer.ms for racer in racers), default=0.0)
    _race(cell, a, [r for r in racers if r.ms <= HOPELESS * best], budget_s)
    for racer in racers:
        result.times[str(racer.choice)] = median(racer.samples or [racer.ms])
    return result


class _DroppedError(Exception):
    """A candidate leaves the race; the text says why."""


def _check_forecast(ms: float, limit_ms: float) -> None:
    """Drop a candidate that is not worth the seconds that it would take."""
    if ms > max(_SLOW_MS, limit_ms):
        message = f"{SLOW}: {ms:.3g} ms, by a smaller shape, is over {HOPELESS:g} times"
        message += " the best"
        raise _DroppedError(message)


def _enter(
    cell: Cell, choice: Family, stacks: tuple[Any, Any], limit_ms: float
) -> float:
    """Compile, check every matrix, and return what one call takes."""
    made, a = stacks
    batch = len(made)
    if batch >= 2 * _PROBE:
        part = a[: batch // _PROBE]
        _call(cell, choice, part)  # compiles what has to be compiled
        _, ms = _call(cell, choice, part)
        if ms > limit_ms:
            part_ms = f"{ms:.3g} ms for a {_PROBE}th of the batch"
            message = f"{SLOW}: {part_ms} is over {HOPELESS:g} times the best"
            raise _DroppedError(message)
    outputs, ms = _call(cell, choice, a)
    results = [checkable(cell.target, each) for each in outputs]
    if not is_right(PROBLEMS[cell.spec.op], cell.call, made, results):
        message = "wrong result"
        raise _DroppedError(message)
    # Twice, or a hiccup of the machine would drop a candidate for good.
    return ms if ms > _TOO_SLOW_MS else min(ms, _call(cell, choice, a)[1])


def _race(cell: Cell, a: Any, racers: Sequence[_Racer], budget_s: float) -> None:
    """Add samples in turns until the budget is spent and the medians stand still."""
    for _ in range(2):
        _passes(cell, a, list(racers), budget_s)
        if len(racers) < 2 or all(_is_steady(racer.samples) for racer in racers):
            return


def _passes(cell: Cell, a: Any, racing: list[_Racer], budget_s: float) -> None:
    end = time.perf_counter() + budget_s
    slowest = max((racer.ms for racer in racing), default=0.0)
    least = 1 if slowest > _SLOW_MS else 3
    for done in range(_MOST_PASSES):
        if not racing or (done >= least and time.perf_counter() > end):
            return
        for racer in racing if done % 2 else reversed(racing):
            if racer.ms < _SPIN_MS:
                _call(cell, racer.choice, a)
            _, ms = _call(cell, racer.choice, a, racer.loops)
            racer.samples.append(ms)
        racing.append(racing.pop(0))


def _is_steady(samples: list[float]) -> bool:
    half = len(samples) // 2
    if half < 2:
        return True
    first, second = median(samples[:half]), median(samples[half:])
    return max(first, second) <= _STEADY * min(first, second)


def _call(
    cell: Cell, choice: Family, a: Any, loops: int = 1
) -> tuple[tuple[Any, ...], float]:
    """Return results and milliseconds of one pinned call, the mean of some."""
    run, wait, call = PROBLEMS[cell.spec.op].run, cell.target.wait, cell.call
    with ScopedPin(cell.spec.op, str(choice)):
        start = time.perf_counter()
        for _ in range(loops):
            outputs = run(call, a)
            wait(outputs[0])
        return outputs, (time.perf_counter() - start) * 1e3 / loops
