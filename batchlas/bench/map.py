"""Which choice serves which order and batch, by the tables in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from batchlas._select import decide
from batchlas._select.pins import VENDOR
from batchlas.tune.tables import specs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from batchlas._runtime.devices import Device
    from batchlas._select import Decision
    from batchlas.bench.functions import Function


class Chosen(NamedTuple):
    """What runs at one order and batch.

    Attributes
    ----------
    choice : str
        Its spelling.
    gain : float or None
        How many times faster than the vendor's routine it was measured to be, at the
        nearest row; None where that has no time for both, or the routine runs.
    is_measured : bool
        Whether there is a row for this very order and batch.
    """

    choice: str
    gain: float | None
    is_measured: bool


@dataclass(frozen=True, slots=True)
class Map:
    """The choices over a grid of orders and batches.

    Attributes
    ----------
    title : str
    orders, batches : tuple of int
    cells : mapping of (n, batch) to Chosen
    choices : tuple of str
        Every choice that occurs, in tie order.
    library : frozenset of str
        Those that stand on a vendor's library.
    """

    title: str
    orders: tuple[int, ...]
    batches: tuple[int, ...]
    cells: Mapping[tuple[int, int], Chosen]
    choices: tuple[str, ...]
    library: frozenset[str]


def chosen_map(
    function: Function,
    dtype: str,
    device: Device,
    orders: Sequence[int],
    batches: Sequence[int],
) -> Map:
    """Ask the tables for every order and batch; nothing runs."""
    (spec,) = [each for each in specs() if each.op == function.op]
    cells = {}
    for n in orders:
        for batch in batches:
            call = function.call(device.kind, (batch, n, n), dtype)
            decision = decide(spec, call, device)
            cells[n, batch] = Chosen(
                str(decision.choice), _gain(decision), _is_measured(decision)
            )
    candidates = spec.candidates(dtype, device.kind)
    used = {cell.choice for cell in cells.values()}
    return Map(
        f"{function.name}, {dtype}, {device.kind} arrays on {device.key}",
        tuple(orders),
        tuple(batches),
        cells,
        tuple(str(each) for each in candidates if str(each) in used),
        frozenset(str(each) for each in candidates if each.uses_library),
    )


def _gain(decision: Decision) -> float | None:
    times = {str(step.choice): step.ms for step in decision.steps}
    vendor, chosen = times.get(VENDOR), times.get(str(decision.choice))
    if vendor is None or chosen is None or decision.choice.name == VENDOR:
        return None
    return vendor / chosen


def _is_measured(decision: Decision) -> bool:
    if decision.table is None or decision.row is None:
        return False
    call = decision.call._asdict()
    names = [key.name for key in decision.table.table.log_keys]
    return [call[name] for name in names] == list(decision.row.log)
