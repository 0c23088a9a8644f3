"""The coverage instrument: which choices this process has, ran, and missed.

Decided here: what ``BATCHLAS_COVERAGE_OUT`` records. One CSV per process,
``<path>.<pid>``, is written at exit: ``linked`` rows are what the build contains and
no evidence that anything runs; ``reached`` rows are what calls ran; ``miss`` rows are
calls that nothing could serve. It works with the trace off.
"""

from __future__ import annotations

import atexit
import csv
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchlas._runtime.forks import Lock, in_forked_child
from batchlas._runtime.settings import settings
from batchlas._runtime.state import process_wide
from batchlas._select.spec import KINDS
from batchlas.exceptions import NoRouteError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batchlas._runtime.devices import Device
    from batchlas._select.families import Family
    from batchlas._select.spec import Call, OpSpec
    from batchlas._select.walk import Decision

COLUMNS = (
    *("kind", "op", "scalar", "backend", "shape_class", "m", "n", "k", "batch"),
    *("chosen_origin", "chosen_algo", "calls"),
    *("native_route_existed", "native_route_supported", "library"),
    *("uplo", "side", "diag", "transA", "transB"),
)
VARIANTS = ("uplo", "side", "diag", "transA", "transB")
SIZES = ("m", "n", "k", "batch")
LINKED_DTYPE = "float32"
UNKNOWN = -1


@dataclass(slots=True)
class Row:
    """A line of the CSV: the cells that are not empty, and how often it was counted."""

    cells: dict[str, object]
    calls: int = 0


class Record:
    """What one process has counted; rows are kept under what makes them distinct."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.specs: tuple[OpSpec, ...] = ()
        self.forget()

    def forget(self) -> None:
        """Drop every count; the ops stay."""
        self.rows: dict[tuple[object, ...], Row] = {}
        self.out: str | None = None

    def count(self, key: tuple[object, ...], cells: dict[str, object]) -> None:
        """Count a call; the first of a key lends the row its exact sizes."""
        with self.lock:
            self.rows.setdefault(key, Row(cells)).calls += 1
            self.out = settings().coverage_out


_record = process_wide("coverage", Record)


def link(specs: Sequence[OpSpec]) -> None:
    """Name the ops of this build, for the linked rows; called where they are listed.

    Raises
    ------
    ValueError
        If two specs share an op.
    """
    ops = [spec.op for spec in specs]
    twice = sorted({op for op in ops if ops.count(op) > 1})
    if twice:
        message = f"ops declared twice: {', '.join(twice)}"
        raise ValueError(message)
    _record.specs = tuple(specs)


@contextmanager
def coverage_scope(decision: Decision) -> Iterator[None]:
    """Count a call as reached, unless its launch finds that nothing can serve it."""
    try:
        yield
    except NoRouteError:
        raise
    except BaseException:
        record_reached(decision)  # it ran, and failed for a reason of its own
        raise
    record_reached(decision)


def record_reached(decision: Decision) -> None:
    """Count a call that ran its choice."""
    if settings().coverage_out is None:
        return
    spec, call, device = decision.spec, decision.call, decision.device
    choice = decision.choice
    cells = {
        "kind": "reached",
        **_identity(spec, call, device),
        **_variant(call),
        "shape_class": shape_class(call),
        "chosen_origin": _origin(choice),
        "chosen_algo": str(choice),
    }
    key = tuple(cells.items())
    sizes = {name: value for name, value in call._asdict().items() if name in SIZES}
    cells |= sizes | _native_flags(spec, call, device)
    if choice.uses_library:
        cells["library"] = spec.library
    _record.count(key, cells)


def record_miss(spec: OpSpec, call: Call, device: Device) -> None:
    """Count a call that nothing could serve."""
    if settings().coverage_out is None:
        return
    cells = {
        "kind": "miss",
        **_identity(spec, call, device),
        "library": spec.library,
    }
    key = tuple(cells.items())
    _record.count(key, cells | _native_flags(spec, call, device))


def shape_class(call: Call) -> str:
    """Return the keys that have no column, and all sizes as the next power of two."""
    values = call._asdict().items()
    own = {"dtype", *VARIANTS}
    return " ".join(f"{name}={_rounded(v)}" for name, v in values if name not in own)


def _rounded(value: object) -> object:
    return 1 << (value - 1).bit_length() if isinstance(value, int) else value


def _identity(spec: OpSpec, call: Call, device: Device) -> dict[str, object]:
    return {"op": spec.op, "scalar": call.dtype, "backend": device.kind}


def _variant(call: Call) -> dict[str, object]:
    return {name: v for name, v in call._asdict().items() if name in VARIANTS}


def _origin(choice: Family) -> str:
    return "vendor" if choice.uses_library else "native"


def _native_flags(spec: OpSpec, call: Call, device: Device) -> dict[str, object]:
    candidates = spec.candidates(call.dtype, device.kind)
    native = [each for each in candidates if not each.uses_library]
    return {
        "native_route_existed": int(bool(native)),
        "native_route_supported": int(
            any(spec.can_run(each, call, device) for each in native)
        ),
    }


def _linked_rows() -> Iterator[dict[str, object]]:
    """Yield what the build contains, for one dtype; candidate lists are pure."""
    for spec in _record.specs:
        for kind in KINDS:
            candidates = spec.candidates(LINKED_DTYPE, kind)
            existed = int(not all(each.uses_library for each in candidates))
            for choice in candidates:
                yield {
                    "kind": "linked",
                    "op": spec.op,
                    "scalar": LINKED_DTYPE,
                    "backend": kind,
                    "chosen_origin": _origin(choice),
                    "chosen_algo": str(choice),
                    "calls": 0,
                    "native_route_existed": existed,
                    "native_route_supported": UNKNOWN,
                    "library": spec.library if choice.uses_library else "",
                }


def table_rows() -> list[dict[str, object]]:
    """Return all rows of the CSV as they stand now."""
    with _record.lock:
        counted = [{**row.cells, "calls": row.calls} for row in _record.rows.values()]
    return [*_linked_rows(), *counted]


def reset() -> None:
    """Forget every count: for tests, and for a child process that was forked."""
    with _record.lock:
        _record.forget()


@atexit.register
def write() -> None:
    """Write the CSV of this process, if one was asked for."""
    out = settings().coverage_out or _record.out
    if out is None:
        return
    try:
        file = open(f"{out}.{os.getpid()}", "w", encoding="utf-8", newline="")  # noqa: PTH123, SIM115 - runs at exit
    except OSError as error:
        sys.stderr.write(f"batchlas: no coverage is written: {error}\n")
        return
    with file:
        lines = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        lines.writeheader()
        lines.writerows(table_rows())


in_forked_child(reset)
