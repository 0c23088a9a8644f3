"""The walk: from the tuned tables to one choice, with every step on record.

Decided here: which of the candidates runs when nothing is pinned. In each table in
borrow order, the first entry of the nearest row that is a candidate and can run wins;
if no table helps, the last resort order decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from batchlas._runtime.notices import warn_once
from batchlas._select.borrow import borrow_order
from batchlas._select.table import TableRow, knows, nearest
from batchlas.exceptions import BorrowedTableWarning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._runtime.devices import Device
    from batchlas._select.families import Family
    from batchlas._select.spec import Call, OpSpec
    from batchlas._select.store import TableStore, TunedTable


class Origin(Enum):
    """What a decision rests on."""

    OWN = "own table"
    BORROWED = "borrowed table"
    FALLTHROUGH = "fallthrough"
    LAST_RESORT = "last resort"
    PINNED = "pinned"


class Verdict(Enum):
    """What became of a ranked choice."""

    CHOSEN = "chosen"
    RUNS = "can run, ranked lower"
    CANNOT_RUN = "cannot run"
    NO_CANDIDATE = "not a candidate"


@dataclass(frozen=True, slots=True)
class Step:
    """One choice that was looked at.

    In a table, ``line`` is its row there and ``ms`` its time; a step of the last resort
    order has no file.
    """

    file: str
    line: int
    choice: Family
    ms: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision and how it came about.

    Attributes
    ----------
    spec, call, device
        What was asked.
    choice : Family
        What runs.
    origin : Origin
        What it rests on.
    table : TunedTable or None
        The table that decided, None for a pin and the last resort.
    row : TableRow or None
        The row of it that lies nearest to the call.
    steps : tuple of Step
        Every choice looked at, in order, over all tables and the last resort.
    pin : str
        The class word that narrowed the candidates, else empty.
    """

    spec: OpSpec
    call: Call
    device: Device
    choice: Family
    origin: Origin
    table: TunedTable | None = None
    row: TableRow | None = None
    steps: tuple[Step, ...] = ()
    pin: str = ""

    @property
    def chosen(self) -> Step | None:
        """Return the step that was chosen, None for a pin."""
        return next((s for s in self.steps if s.verdict is Verdict.CHOSEN), None)

    @property
    def runner_up(self) -> Step | None:
        """Return the step that would have been next, None without one."""
        return next((s for s in self.steps if s.verdict is Verdict.RUNS), None)


def walk(
    spec: OpSpec,
    call: Call,
    device: Device,
    candidates: Sequence[Family],
    store: TableStore,
) -> Decision | None:
    """Return the automatic decision among `candidates`, None if none can run."""
    runnable = {each for each in candidates if spec.can_run(each, call, device)}
    steps: list[Step] = []
    has_own = False
    for key in borrow_order(device, store.devices(spec.op)):
        tuned = store.find(spec, key, call.dtype, device.kind)
        if tuned is None:
            continue
        if key != device.key and not knows(tuned.table, device.kind):
            continue  # its order of other arrays' kernels says nothing here
        has_own = has_own or key == device.key
        row = nearest(tuned.table, call)
        ranked = [(tuned.choices[each.spelling], each.ms) for each in row.entries]
        seen, choice = _judge(
            (tuned.table.file, row.line), ranked, candidates, runnable
        )
        steps += seen
        if choice is not None:
            origin = _origin(key, device, has_own=has_own)
            if origin is Origin.BORROWED:
                _warn_of_loan(spec, device, key)
            return Decision(
                spec, call, device, choice, origin, tuned, row, tuple(steps)
            )
    ordered = last_resort_order(spec, candidates)
    seen, choice = _judge(
        ("", 0), [(each, None) for each in ordered], candidates, runnable
    )
    if choice is None:
        return None
    steps += seen
    origin = Origin.LAST_RESORT
    return Decision(spec, call, device, choice, origin, steps=tuple(steps))


def last_resort_order(spec: OpSpec, candidates: Sequence[Family]) -> list[Family]:
    """Return the candidates by generality, those that the op does not name last."""
    names = spec.last_resort
    return sorted(
        candidates,
        key=lambda each: names.index(each.name) if each.name in names else len(names),
    )


def _judge(
    where: tuple[str, int],
    ranked: Sequence[tuple[Family, float | None]],
    candidates: Sequence[Family],
    runnable: set[Family],
) -> tuple[list[Step], Family | None]:
    """Return a verdict on every ranked choice, and the first that can run."""
    steps: list[Step] = []
    chosen: Family | None = None
    for choice, ms in ranked:
        if choice not in candidates:
            verdict = Verdict.NO_CANDIDATE
        elif choice not in runnable:
            verdict = Verdict.CANNOT_RUN
        elif chosen is None:
            chosen, verdict = choice, Verdict.CHOSEN
        else:
            verdict = Verdict.RUNS
        steps.append(Step(*where, choice, ms, verdict))
    return steps, chosen


def _origin(key: str, device: Device, *, has_own: bool) -> Origin:
    if key == device.key:
        return Origin.OWN
    return Origin.FALLTHROUGH if has_own else Origin.BORROWED


def _warn_of_loan(spec: OpSpec, device: Device, lender: str) -> None:
    warn_once(
        ("borrow", spec.op, device.key),
        f"{device.key} has no tuned {spec.op} table; that of {lender} decides",
        BorrowedTableWarning,
    )
