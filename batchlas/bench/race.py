"""One shape: batchlas and its peers, checked, then timed in turns in one process."""

from __future__ import annotations

import os
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np
import threadpoolctl

from batchlas import linalg
from batchlas._dispatch import NUMPY_FUNCTIONS
from batchlas._explain import explain
from batchlas.bench.floor import floor_ms
from batchlas.bench.functions import check_shape, function_of
from batchlas.bench.peers import Peer, is_installed, peer
from batchlas.bench.result import ABSENT, OURS, PEERS, Result, Row
from batchlas.exceptions import BatchlasWarning
from batchlas.tune.targets import Target, host_copy, targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from batchlas.bench.functions import Function

_GATE = 300.0  # units of n eps |a|, as the tuner's
_LEAST_MS = 0.5  # of a sample: shorter calls are timed several at once
_SPIN_MS = 20.0  # longer calls do not feel what the one before left running
_CALLS = 3  # samples of a turn
_LEAST_TURNS = 3
CORETYPE = "OPENBLAS_CORETYPE"


@dataclass(slots=True)
class _Side:
    """A side of the race: a peer with one thread count."""

    peer: Peer
    threads: int | None
    array: Any
    ms: float = 0.0
    samples: list[float] = field(default_factory=list)

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Hold the library's threads to this side's count."""
        if self.threads is None:
            yield
            return
        with threadpoolctl.threadpool_limits(self.threads):
            yield


def race(
    name: str,
    shape: tuple[int, ...],
    dtype: str,
    against: tuple[str, ...],
    array: str | None,
    budget_s: float,
) -> Result:
    """Compare; see `batchlas.benchmark`."""
    function = function_of(name)
    check_shape(function, shape, dtype)
    _check_surroundings(against)
    target = _target(array)
    host = function.stack(shape, dtype)
    ours = _ours(function, target)
    sides, rows = _sides(function, host, against, target, ours)
    _turns([side for side in sides if side.samples], budget_s)
    told = explain(function.name, target.place(host), **_options(function))
    by_name = {row.side: row for row in rows}
    for side in sides:
        if side.samples:
            what = told.choice if side.peer is ours else _threads_text(side)
            row = Row(side.peer.name, what, median(side.samples), min(side.samples))
            by_name[row.side] = _better(by_name.get(row.side), row)
    device = target.device
    floor = floor_ms(target, function, shape, dtype)
    first = by_name.pop(OURS)
    others = sorted(by_name.values(), key=lambda row: row.ms or float("inf"))
    return Result(
        function.name,
        dtype,
        shape,
        device.key,
        device.kind,
        (first, *others),
        floor,
    )


def _check_surroundings(against: tuple[str, ...]) -> None:
    """Refuse what would make the comparison one of batchlas with itself."""
    unknown = sorted(set(against) - set(PEERS))
    if unknown:
        message = f"unknown peers {unknown}; allowed: {', '.join(PEERS)}"
        raise ValueError(message)
    if np.linalg.cholesky is not NUMPY_FUNCTIONS["cholesky"]:
        message = "batchlas is installed in place of numpy.linalg: uninstall() first"
        raise RuntimeError(message)
    if "numpy" in against and CORETYPE in os.environ:
        warnings.warn(
            f"{CORETYPE} is set, which may slow NumPy down; start without it",
            BatchlasWarning,
            stacklevel=4,
        )


def _target(array: str | None) -> Target:
    """Return where batchlas computes: on a GPU of CuPy's where there is one."""
    found = {each.device.kind: each for each in reversed(targets())}
    kind = array or ("cupy" if "cupy" in found else "numpy")
    if kind not in found:
        message = f"no {kind} arrays here; allowed: {', '.join(sorted(found))}"
        raise ValueError(message)
    return found[kind]


def _options(function: Function) -> dict[str, bool]:
    return {"full_matrices": False} if function.name == "svd" else {}


def _ours(function: Function, target: Target) -> Peer:
    call, options = vars(linalg)[function.name], _options(function)

    def ours(a: Any) -> tuple[Any, ...]:
        results = call(a, **options)
        return tuple(results) if isinstance(results, tuple) else (results,)

    return Peer(
        OURS,
        target.place,
        ours,
        wait=lambda results: target.wait(results[0]),
        host=lambda a: host_copy(target, a),
    )


def _sides(
    function: Function,
    host: NDArray[Any],
    against: tuple[str, ...],
    target: Target,
    ours: Peer,
) -> tuple[list[_Side], list[Row]]:
    """Return the sides that are right, with one sample each, and rows of the others."""
    sides, rows = [], []
    for name in (OURS, *against):
        if name != OURS and not is_installed(name):
            rows.append(Row(name, ABSENT))
            continue
        label = name
        try:
            gpu = target.device.is_gpu
            each = ours if name == OURS else peer(name, function.name, on_gpu=gpu)
            label = each.name
            array = each.place(host)
            found = [_Side(each, threads, array) for threads in each.threads]
            for side in found:
                _enter(function, host, side)
            sides += found
        except Exception as error:  # a peer's failure is a finding, ours is not
            if name == OURS:
                raise
            rows.append(Row(label, f"failed, {type(error).__name__}: {error}"[:100]))
    return sides, rows


def _enter(function: Function, host: NDArray[Any], side: _Side) -> None:
    """Warm a side up, check every matrix of its result, and take its first sample.

    Raises
    ------
    ArithmeticError
        If a matrix of the result is wrong.
    """
    with side.limits():
        results = side.peer.call(side.array)
        side.peer.wait(results)
        error = function.error(host, [side.peer.host(each) for each in results])
        if not error <= _GATE:
            message = f"wrong result, off by {error:.3g} n eps |a|"
            raise ArithmeticError(message)
        side.ms = _time(side, 1)
    side.samples.append(side.ms)


def _turns(sides: list[_Side], budget_s: float) -> None:
    """Add samples in turns until the budget is spent."""
    end = time.perf_counter() + budget_s
    turns = 0
    while turns < _LEAST_TURNS or time.perf_counter() < end:
        for side in sides if turns % 2 else reversed(sides):
            with side.limits():
                _turn(side)
        sides.append(sides.pop(0))
        turns += 1
        if turns >= 2 and time.perf_counter() > end + 2 * budget_s:
            return  # slow calls: every side has been at it twice


def _turn(side: _Side) -> None:
    loops = max(1, min(50, round(_LEAST_MS / max(side.ms, 1e-3))))
    if side.ms < _SPIN_MS:
        _time(side, loops)
    slow = side.ms > 10 * _SPIN_MS
    side.samples += [_time(side, loops) for _ in range(1 if slow else _CALLS)]


def _time(side: _Side, loops: int) -> float:
    """Return milliseconds of a call, the mean of some."""
    start = time.perf_counter()
    for _ in range(loops):
        side.peer.wait(side.peer.call(side.array))
    return (time.perf_counter() - start) * 1e3 / loops


def _threads_text(side: _Side) -> str:
    if len(side.peer.threads) == 1:
        return ""
    return "one thread" if side.threads == 1 else "all threads"


def _better(old: Row | None, new: Row) -> Row:
    """Return the faster of two rows of one side."""
    return new if old is None or (new.ms or 0) < (old.ms or 0) else old
