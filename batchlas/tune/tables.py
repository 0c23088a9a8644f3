"""From the ledger to a table file.

Decided here: which keys a file declares, in which order choices are ranked (a tie of
3 % goes to the earlier candidate), and how numbers are written.
"""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING, Any

from batchlas.tune.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from batchlas._select import OpSpec
    from batchlas.tune.ledger import Record

TIE = 1.03
# Keys in declared order, exact ones first; the weights follow the cost of the op.
KEYS = {
    "potrf": ("dtype:exact", "array:exact", "n:log:3", "batch:log"),
    "syev": ("dtype:exact", "array:exact", "jobz:exact", "n:log:5", "batch:log"),
    "gesvd": (
        "dtype:exact",
        "array:exact",
        "vec:exact",
        "m:log:1.5",
        "n:log:1.5",
        "batch:log",
    ),
}


def ranked(times: dict[str, float | None], order: Sequence[str]) -> list[str]:
    """Return the spellings of right results, fastest first, near ties in list order.

    A choice moves ahead of a faster one only within 3 % of it, and only if it comes
    earlier in the candidates. What is no candidate any more is left out.
    """
    timed = {n: ms for n, ms in times.items() if ms is not None and n in order}
    names = sorted(timed, key=timed.__getitem__)
    result: list[str] = []
    while names:
        limit = timed[names[0]] * TIE
        near = [name for name in names if timed[name] <= limit]
        first = min(near, key=order.index)
        result.append(first)
        names.remove(first)
    return result


def table_text(spec: OpSpec, device: str, records: Iterable[Record]) -> str:
    """Return a whole table file, rows in the order of their keys; empty without any."""
    mine = [r for r in records if (r.op, r.device) == (spec.op, device)]
    mine = [r for r in mine if any(ms is not None for ms in r.times.values())]
    if not mine:
        return ""
    facts = f"op={spec.op} device={device} {_provenance(mine)} source=measured"
    lines = [f"# {facts}", "# keys: " + " ".join(KEYS[spec.op])]
    names = [key.partition(":")[0] for key in KEYS[spec.op]]
    for record in sorted(mine, key=lambda r: [_sortable(r.key[n]) for n in names]):
        shape = " ".join(f"{name}={record.key[name]}" for name in names)
        key = PROBLEMS[spec.op].call(**record.key)
        order = [str(each) for each in spec.candidates(key.dtype, key.array)]
        names_by_rank = ranked(record.times, order)
        entries = [f"{n} {_milliseconds(record.times[n])}" for n in names_by_rank]
        if entries:
            lines.append(" | ".join([shape, *entries]))
    return "\n".join(lines) + "\n"


def _provenance(records: Sequence[Record]) -> str:
    """Return commit and kernels of the oldest row: the table is as stale as that."""
    oldest = records[0]
    return f"batchlas={oldest.commit or '0000000'} kernels={oldest.kernels}"


def without_commit(text: str) -> str:
    """Return a table without the commit, which does not come from measuring."""
    return re.sub(r" batchlas=[0-9a-f]+", "", text, count=1)


def _milliseconds(ms: Any) -> str:
    """Write a time with four significant digits and no exponent."""
    digits = max(0, 3 - _magnitude(ms))
    return f"{ms:.{digits}f}"


def _magnitude(ms: float) -> int:
    return int(f"{ms:e}".partition("e")[2])


def _sortable(value: str | int) -> tuple[str, int]:
    return (value, 0) if isinstance(value, str) else ("", value)


def specs() -> tuple[OpSpec, ...]:
    """Return the ops that can be tuned."""
    return importlib.import_module("batchlas._ops").SPECS  # type: ignore[no-any-return]
