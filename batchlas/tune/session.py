"""A run of the tuner: what is missing is measured, in order, until the time is up.

The order is: shapes of the coarse grid that lack a candidate, every group in turn;
shapes between neighbours with different winners, until there are none; the same with
the fine grid; then what was measured with other kernels than today's.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from batchlas._runtime.settings import scoped_env
from batchlas._select.sources import kernels_hash
from batchlas._select.store import swap_builtin
from batchlas.tune import ledger
from batchlas.tune.grid import size, size_keys
from batchlas.tune.refine import between
from batchlas.tune.times import duration
from batchlas.tune.timing import SLOW, time_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from batchlas._select import Family
    from batchlas.tune.grid import Cell
    from batchlas.tune.ledger import Record
    from batchlas.tune.progress import Progress


_COARSE = 1  # the last level of the coarse grid


class Session:
    """The state of a run.

    Parameters
    ----------
    path : Path
        The ledger.
    cell_s : float
        Seconds to time each shape, more or less.
    budget_s : float
        Seconds in all.
    commit : str
        Goes into the records.
    shown : Progress
        What the user sees.
    """

    def __init__(
        self,
        path: Path,
        *,
        cell_s: float,
        budget_s: float,
        commit: str,
        shown: Progress,
    ) -> None:
        self._path, self._cell_s, self._commit = path, cell_s, commit
        self._shown = shown
        self._start = time.monotonic()
        self._end = self._start + budget_s
        self._records = {record.cell: record for record in ledger.read(path)}
        self._measured = 0

    @property
    def fidelity(self) -> int:
        """What this run's records are worth."""
        return max(1, round(self._cell_s * 1e3))

    def run(self, grid: Sequence[Cell]) -> bool:
        """Measure; return whether nothing was left to measure."""
        with _without_tables():
            return self._run(grid)

    def _run(self, grid: Sequence[Cell]) -> bool:
        known: dict[tuple[object, ...], Cell] = {}
        for level in (_COARSE, math.inf):
            part = {_name(cell): cell for cell in grid if cell.level <= level}
            known |= part
            if not self._measure([c for c in part.values() if self._lacks(c)]):
                return False
            if not self._refine(known):
                return False
        return self._measure([c for c in known.values() if self._is_stale(c)])

    def _refine(self, known: dict[tuple[object, ...], Cell]) -> bool:
        """Measure between neighbours with different winners until there are none.

        What is measured joins the known cells, and so does what an earlier run has
        refined, which may lack a new candidate.
        """
        while True:
            middle = between(self._pairs(known.values()))
            fresh = {_name(cell): cell for cell in middle if _name(cell) not in known}
            known |= fresh
            if not self._measure([c for c in fresh.values() if self._lacks(c)]):
                return False
            if not fresh:
                return True

    def uncovered(self, grid: Iterable[Cell]) -> list[Cell]:
        """Return the shapes of the coarsest level that have no measurement."""
        every = list(grid)
        coarsest = min((cell.level for cell in every), default=0)
        coarse = [cell for cell in every if cell.level == coarsest]
        return [cell for cell in coarse if _name(cell) not in self._records]

    def _pairs(self, cells: Iterable[Cell]) -> list[tuple[Cell, Record]]:
        found = ((cell, self._records.get(_name(cell))) for cell in cells)
        return [(cell, record) for cell, record in found if record is not None]

    def _lacks(self, cell: Cell) -> bool:
        """Whether some candidate has no measurement that is as good as this run's."""
        record = self._records.get(_name(cell))
        if record is None or record.fidelity < self.fidelity:
            return True
        return any(str(choice) not in record.times for choice in candidates(cell))

    def _is_stale(self, cell: Cell) -> bool:
        record = self._records.get(_name(cell))
        return record is not None and not record.is_current

    def _measure(self, cells: Sequence[Cell]) -> bool:
        """Measure cells in order; return whether the time sufficed for all."""
        start = time.monotonic()
        for done, cell in enumerate(cells):
            now = time.monotonic()
            if now >= self._end:
                self._shown.say(f"time is up: {len(cells) - done} shapes remain")
                return False
            needed = (now - start) / max(done, 1) * (len(cells) - done)
            left = min(self._end - now, needed if done else self._end - now)
            self._shown.show(done, len(cells), left, describe(cell))
            self._add(cell)
        if cells:
            self._shown.show(len(cells), len(cells), 0, "")
        return True

    def _add(self, cell: Cell) -> None:
        """Measure one cell and write it down."""
        old = self._records.get(_name(cell))
        # A record that lacks a candidate is replaced by one that is worth as much.
        fidelity = max(self.fidelity, old.fidelity if old and old.is_current else 0)
        timing = time_cell(
            cell,
            candidates(cell),
            budget_s=fidelity / 1e3,
            expected=self._expected(cell),
            forecast=self._forecast(cell),
        )
        for choice, why in timing.notes.items():
            if not why.startswith(SLOW):
                self._shown.say(f"{describe(cell)}: {choice}: {why}")
        device = cell.target.device.key
        record = ledger.Record(
            op=cell.spec.op,
            device=device,
            key=cell.call._asdict(),
            times=timing.times,
            fidelity=fidelity,
            kernels=kernels_hash(cell.spec.op, device) or "00000000",
            notes=timing.notes,
            commit=self._commit,
        )
        ledger.append(self._path, record)
        self._records[record.cell] = record
        self._measured += 1

    def _expected(self, cell: Cell) -> dict[str, float]:
        """Return what candidates took before, in the last cell of this kind of array.

        Only the order of magnitude matters: it says who goes first.
        """
        for record in reversed(self._records.values()):
            same = (record.op, record.device) == (cell.spec.op, cell.target.device.key)
            if same and record.key.get("array") == cell.call.array:
                return {c: ms for c, ms in record.times.items() if ms is not None}
        return {}

    def _forecast(self, cell: Cell) -> dict[str, float]:
        """Return what candidates will take at least: a smaller shape's time, scaled.

        A kernel that is at its best with many small matrices may take minutes for a
        large one, and nothing can stop it then.
        """
        found: dict[str, tuple[float, float]] = {}
        for record in self._records.values():
            ratio = least_ratio(cell, record)
            if ratio < 1:
                continue
            for name, ms in record.times.items():
                if ms is None:
                    continue
                # The nearest shape tells most; of equally near ones, the slowest.
                mine = ratio, -ms * ratio
                found[name] = min(mine, found.get(name, mine))
        return {name: -ms for name, (_, ms) in found.items()}

    def summary(self) -> str:
        """Return one line on what this run has done."""
        took = duration(time.monotonic() - self._start)
        return f"{self._measured} shapes measured in {took}"


def least_ratio(cell: Cell, record: Record) -> float:
    """Return how many times as long as a record's shape a cell takes at least.

    As its work is more; but a GPU takes thousands of matrices in the time of one. Below
    1 where the record says nothing.
    """
    mine, other = cell.call._asdict(), record.key
    sizes = {"batch", *size_keys(cell.call)}
    if (record.op, record.device) != (cell.spec.op, cell.target.device.key):
        return 0.0
    if any(other.get(key) != value for key, value in mine.items() if key not in sizes):
        return 0.0
    order = size(cell.call) / min(int(other[key]) for key in size_keys(cell.call))
    if any(mine[key] != order * int(other[key]) for key in size_keys(cell.call)):
        return 0.0  # another aspect
    batches = float(mine["batch"] / int(other["batch"]))
    if cell.target.device.is_gpu:
        return float(min(order, batches) >= 1)
    return float(order**3 * batches)


@contextmanager
def _without_tables() -> Iterator[None]:
    """Take all tables out of force: one that is out of date must not stop the tuner."""
    swap_builtin({})
    try:
        with scoped_env(BATCHLAS_TUNED_DIR=None, BATCHLAS_USER_TABLES="0"):
            yield
    finally:
        swap_builtin(None)


def candidates(cell: Cell) -> list[Family]:
    """Return the choices that can run a cell's call."""
    device = cell.target.device
    every = cell.spec.candidates(cell.call.dtype, device.kind)
    return [c for c in every if cell.spec.can_run(c, cell.call, device)]


def describe(cell: Cell) -> str:
    """Return a cell for people, such as ``potrf float64 numpy L n=8 batch=64``."""
    values = cell.call._asdict()
    sizes = [f"{k}={v}" for k, v in values.items() if isinstance(v, int)]
    words = [v for v in values.values() if isinstance(v, str)]
    return " ".join([cell.spec.op, *words, *sizes])


def _name(cell: Cell) -> tuple[object, ...]:
    """Return what the ledger calls a cell."""
    return (cell.spec.op, cell.target.device.key, *cell.call._asdict().items())
