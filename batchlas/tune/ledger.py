"""What has been measured: JSON lines, appended as they come, never rewritten.

A run that was interrupted goes on where it stopped. Of two measurements of a cell, the
later one counts if the kernels have changed in between; with the same kernels the one
that was given more time, and among equals the later one. What counts follows from the
ledger alone, never from today's sources: a table can be derived again at any time.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from batchlas._select.sources import kernels_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Record:
    """One measured cell.

    Attributes
    ----------
    op, device : str
    key : dict
        The table key, by name.
    times : dict of str to float or None
        Milliseconds by spelling; None for a candidate that has no time.
    fidelity : int
        Milliseconds that the race was given; more beats less.
    kernels : str
        Hash of the op's kernel sources when it was measured.
    notes : dict of str to str
        Why a candidate has no time: a wrong result, an error, or hopelessly slow.
    commit : str
        The checkout's commit then.
    """

    op: str
    device: str
    key: dict[str, str | int]
    times: dict[str, float | None]
    fidelity: int
    kernels: str
    notes: dict[str, str] = field(default_factory=dict)
    commit: str = ""

    @property
    def cell(self) -> tuple[object, ...]:
        """What is measured, without the outcome."""
        return (self.op, self.device, *self.key.items())

    @property
    def is_current(self) -> bool:
        """Whether it was measured with the kernels that there are now."""
        return self.kernels == kernels_hash(self.op, self.device)

    def beats(self, older: Record) -> bool:
        """Whether it counts instead of an older record of the same cell."""
        return self.kernels != older.kernels or self.fidelity >= older.fidelity


def append(path: Path, record: Record) -> None:
    """Add one record; a line is written whole or, at a crash, not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(asdict(record)) + "\n"
    with path.open("a+b") as file:
        if file.tell() and _is_torn(file.tell(), path):
            line = "\n" + line
        file.write(line.encode())


def _is_torn(end: int, path: Path) -> bool:
    """Whether the last line was cut short, so that the next needs a new one."""
    with path.open("rb") as file:
        file.seek(end - 1)
        return file.read(1) != b"\n"


def read(path: Path) -> list[Record]:
    """Return the records in force, one per cell; a torn line is passed over."""
    if not path.exists():
        return []
    records = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            records.append(Record(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            continue  # cut short by an interrupt; the cell is measured again
    return in_force(records)


def in_force(records: Iterable[Record]) -> list[Record]:
    """Return the record that counts for each cell, the oldest first."""
    best: dict[tuple[object, ...], Record] = {}
    for record in records:
        old = best.get(record.cell)
        if old is None or record.beats(old):
            best.pop(record.cell, None)
            best[record.cell] = record
    return list(best.values())


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep a second tuner from measuring into the same ledger at the same time.

    Raises
    ------
    RuntimeError
        If another process holds it.
    """
    try:
        import fcntl
    except ImportError:  # Windows: two at once only disturb each other's timings
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"{path}: another tuner is measuring into it"
            raise RuntimeError(message) from error
        yield
