"""Which shapes lie between two neighbours that different candidates win.

Decided here: where the grid is too coarse. A change of winner counts if taking one
neighbour's winner at the other one would cost more than 10 %: less is noise, and of no
consequence. Sizes are halved until neighbours are within 10 %, batches until they are
within a factor of two.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from batchlas.tune.grid import Cell, in_turns, is_worth, resized, size
from batchlas.tune.tables import ranked

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from batchlas.tune.ledger import Record

MATTERS = 1.1
CLOSE_SIZES = 1.1
CLOSE_BATCHES = 2.0


class Point(NamedTuple):
    """A measured cell as the refinement sees it."""

    cell: Cell
    times: Mapping[str, float | None]
    winner: str


def between(measured: Iterable[tuple[Cell, Record]]) -> list[Cell]:
    """Return the shapes to measure next, the costliest changes of winner first."""
    groups: dict[tuple[object, ...], list[Point]] = {}
    for cell, record in measured:
        names = _order(cell)
        best = ranked(record.times, names)
        if best:
            groups.setdefault(cell.group, []).append(Point(cell, record.times, best[0]))
    return list(in_turns(_in_group(points) for points in groups.values()))


def _order(cell: Cell) -> list[str]:
    call = cell.call
    return [str(c) for c in cell.spec.candidates(call.dtype, cell.target.device.kind)]


def _in_group(points: list[Point]) -> list[Cell]:
    """Return the midpoints that one group asks for, each once."""
    found: dict[object, tuple[float, Cell]] = {}
    for one, other in (*_neighbours(points, along_size=True), *_neighbours(points)):
        cost = max(_loss(one, other), _loss(other, one))
        middle = _middle(one.cell, other.cell) if cost > MATTERS else None
        if middle is not None and found.get(middle.call, (0.0,))[0] < cost:
            found[middle.call] = cost, middle
    known = {point.cell.call for point in points}
    costly = sorted(found.values(), key=lambda each: -each[0])
    return [cell for _, cell in costly if cell.call not in known]


def _neighbours(
    points: list[Point], *, along_size: bool = False
) -> Iterator[tuple[Point, Point]]:
    """Yield neighbours in size at one batch, or in batch at one size."""
    lines: dict[int, list[Point]] = {}
    for point in points:
        call = point.cell.call
        lines.setdefault(call.batch if along_size else size(call), []).append(point)
    for line in lines.values():
        line.sort(key=lambda p: (size(p.cell.call), p.cell.call.batch))
        yield from pairwise(line)


def _loss(here: Point, there: Point) -> float:
    """Return how much slower the winner there is here than the winner here."""
    time, best = here.times.get(there.winner), here.times[here.winner]
    if time is None or best is None:
        return math.inf
    return time / best


def _middle(one: Cell, other: Cell) -> Cell | None:
    """Return the cell halfway between two, None where they are close enough."""
    low, high = size(one.call), size(other.call)
    if low != high:
        middle = resized(one.call, _between(low, high), one.call.batch)
        close = high / low < CLOSE_SIZES or size(middle) in (low, high)
    else:
        low, high = one.call.batch, other.call.batch
        middle = resized(one.call, size(one.call), _between(low, high))
        close = high / low <= CLOSE_BATCHES or middle.batch in (low, high)
    if close or not is_worth(one.spec.op, middle, one.target.device):
        return None
    return Cell(one.spec, one.target, middle, level=one.level)


def _between(low: int, high: int) -> int:
    return round(math.sqrt(low * high))
