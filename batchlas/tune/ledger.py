"""What has been measured: JSON lines, appended as they come, never rewritten.

A run that was interrupted goes on where it stopped. A measurement of more passes beats
one of fewer, whichever came first; among equals the later one counts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
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
        Milliseconds by spelling; None for a candidate that gave a wrong result.
    fidelity : int
        Timed passes asked for; more beat fewer.
    kernels : str
        Hash of the op's kernel sources when it was measured.
    """

    op: str
    device: str
    key: dict[str, str | int]
    times: dict[str, float | None]
    fidelity: int
    kernels: str

    @property
    def cell(self) -> tuple[object, ...]:
        """What is measured, without the outcome."""
        return (self.op, self.device, *self.key.items())


def append(path: Path, record: Record) -> None:
    """Add one record; a line is written whole or, at a crash, not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(record)) + "\n")


def read(path: Path) -> list[Record]:
    """Return the records in force, one per cell; a torn last line is passed over."""
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
    """Return the record that counts for each cell, in order of first appearance."""
    best: dict[tuple[object, ...], Record] = {}
    for record in records:
        old = best.get(record.cell)
        if old is None or record.fidelity >= old.fidelity:
            best[record.cell] = record
    return list(best.values())
