"""Tuned tables as values, and the row that lies nearest to a call.

Decided here: which measured shape speaks for a call. How a file is read is in
``table_parser``; which table is asked is in ``borrow``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING, Any

from batchlas.exceptions import TableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlas._select.spec import Call

# Distances closer than this are equal: logarithms of integers are rounded.
_NEAR_TIE = 1e-9


@dataclass(frozen=True, slots=True)
class TableKey:
    """One key of a table: compared as text if exact, by weighted log2 otherwise."""

    name: str
    exact: bool
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A ranked choice: its spelling, and milliseconds for the whole batch if timed."""

    spelling: str
    ms: float | None


@dataclass(frozen=True, slots=True)
class TableRow:
    """One measured shape and every choice ranked there, fastest first."""

    line: int
    exact: tuple[str, ...]
    log: tuple[int, ...]
    entries: tuple[TableEntry, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The rows of one op, device and dtype, with where they come from.

    Attributes
    ----------
    op, device, dtype : str
        What the table is for.
    file : str
        The file as messages name it.
    keys_line : int
        Line of the ``# keys:`` comment.
    exact_keys, log_keys : tuple of TableKey
        The keys in declared order, without ``dtype``.
    rows : tuple of TableRow
        At least one.
    facts : mapping of str to str
        The header: ``batchlas``, ``kernels`` and ``source``, as far as given.
    """

    op: str
    device: str
    dtype: str
    file: str
    keys_line: int
    exact_keys: tuple[TableKey, ...]
    log_keys: tuple[TableKey, ...]
    rows: tuple[TableRow, ...]
    facts: Mapping[str, str]


def knows(table: Table, kind: str) -> bool:
    """Whether some row was measured with this kind of array."""
    names = [key.name for key in table.exact_keys]
    if "array" not in names:
        return True
    place = names.index("array")
    return any(row.exact[place] == kind for row in table.rows)


@lru_cache(maxsize=4096)
def nearest(table: Table, call: Call) -> TableRow:
    """Return the row that is nearest to `call`.

    The rows that share the longest matching prefix of exact keys compete (keys are
    dropped from the right until some row matches); the least sum of
    ``weight * |log2(row / call)|`` wins, a tie going to the smaller log keys in
    declared order.

    Raises
    ------
    TableError
        If the call lacks one of the table's keys.
    """
    values = call._asdict()
    exact = [str(_value(table, values, key)) for key in table.exact_keys]
    wanted = [log2(_value(table, values, key)) for key in table.log_keys]
    rows = _matching(table.rows, exact)
    weights = [key.weight for key in table.log_keys]
    distances = [
        sum(
            weight * abs(log2(have) - want)
            for weight, have, want in zip(weights, row.log, wanted, strict=True)
        )
        for row in rows
    ]
    limit = min(distances) + _NEAR_TIE
    tied = [row for row, far in zip(rows, distances, strict=True) if far <= limit]
    return min(tied, key=lambda row: row.log)


def _value(table: Table, values: Mapping[str, Any], key: TableKey) -> Any:
    if key.name not in values:
        message = f"{table.file}:{table.keys_line}: the call has no key {key.name!r}"
        raise TableError(message)
    return values[key.name]


def _matching(rows: Sequence[TableRow], exact: Sequence[str]) -> Sequence[TableRow]:
    for length in range(len(exact), 0, -1):
        prefix = tuple(exact[:length])
        matching = [row for row in rows if row.exact[:length] == prefix]
        if matching:
            return matching
    return rows
