"""``python -m batchlas tune``: measure what is missing, then write the tables."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import batchlas
from batchlas._runtime.folders import user_tables
from batchlas.tune import ledger, tables
from batchlas.tune.grid import BATCHES, DTYPES, ORDER_LEVELS, ORDERS, cells
from batchlas.tune.progress import progress
from batchlas.tune.session import Session
from batchlas.tune.targets import targets
from batchlas.tune.times import seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from batchlas._select import OpSpec
    from batchlas.tune.grid import Cell
    from batchlas.tune.progress import Progress
    from batchlas.tune.targets import Target

_KINDS = ("numpy", "dpnp", "cupy")
_INTERRUPTED = 130
_USAGE = 2
_BUSY = 0.7  # processes that ran or waited in the last minute


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.description = (
        "Time every kernel that can serve an op on this machine, over a grid of orders "
        "and batches, and write the tables that choose by it. A run can be interrupted "
        "and goes on where it stopped."
    )
    ops = [spec.op for spec in tables.specs()]
    add = parser.add_argument
    add("--op", choices=ops, action="append", help="default: all")
    add("--dtype", choices=DTYPES, action="append", help="default: all")
    add("--array", choices=_KINDS, action="append", help="default: all that are here")
    add("--device", help="key of a device, such as sm_90 (default: the processor)")
    add("--budget", type=_parsed(seconds), default=600.0, help="time in all: 90s, 10m")
    add("--cell", type=_parsed(seconds), default=0.1, help="time per shape: 0.1")
    add("--orders", type=_parsed(_sizes), default=ORDERS, help="such as 2,3,4")
    add("--batches", type=_parsed(_sizes), default=BATCHES, help="such as 1,64")
    add("--out", type=Path, help="folder of the tables (default: your own, found)")
    add("--ledger", type=Path, help="what was measured (default: <device>.jsonl there)")
    add("--check", action="store_true", help="measure nothing; compare the tables")
    add("--search", action="store_true", help="search schedules; write no tables")


def _parsed(parse: Callable[[str], object]) -> Callable[[str], object]:
    """Return an argparse type whose error is the parser's own text."""

    def parsed(text: str) -> object:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parsed


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(each) for each in text.split(",")}))
    if min(sizes) < 1:
        message = f"{text!r} has a size below 1"
        raise ValueError(message)
    return sizes


def run(given: argparse.Namespace) -> int:
    """Carry the subcommand out; return the exit status."""
    specs = [s for s in tables.specs() if given.op is None or s.op in given.op]
    folder = given.out or user_tables()
    if given.check:
        return _check(specs, given.device, folder, given.ledger)
    found = _chosen(given.device, given.array)
    if not found:
        every = (f"{t.device.key} ({t.device.kind})" for t in targets())
        print(f"no such device; here are: {', '.join(every)}", file=sys.stderr)
        return _USAGE
    if given.search:
        return _search(specs, given)
    key = found[0].device.key
    path = given.ledger or folder / f"{key}.jsonl"
    dtypes = given.dtype or DTYPES
    grid = cells(specs, found, dtypes, given.orders, given.batches)
    with ledger.held(path):
        status, missing = _measure(grid, path, given)
    _write(specs, key, path, folder, missing)
    return status


def _chosen(device: str | None, kinds: list[str] | None) -> list[Target]:
    """Return the kinds of arrays on one device; by default on the processor."""
    key = device or targets()[0].device.key
    return [
        each
        for each in targets()
        if each.device.key == key and (kinds is None or each.device.kind in kinds)
    ]


def _measure(
    grid: list[Cell], path: Path, given: argparse.Namespace
) -> tuple[int, list[Cell]]:
    """Measure; return the exit status and which coarse shapes have no measurement."""
    with progress() as shown:
        _say_if_busy(shown)
        session = Session(
            path,
            cell_s=given.cell,
            budget_s=given.budget,
            commit=_commit(),
            shown=shown,
        )
        status = 0
        try:
            done = session.run(grid)
            how = "nothing is left to measure" if done else "run it again to go on"
        except KeyboardInterrupt:
            status, how = _INTERRUPTED, "interrupted; run it again to go on"
        shown.say(f"{session.summary()}; {how}")
        return status, session.uncovered(grid)


def _search(specs: list[OpSpec], given: argparse.Namespace) -> int:
    """Print the best schedules of every op that has some to search."""
    from batchlas.tune.schedules import search

    orders = ORDER_LEVELS[0] if given.orders is ORDERS else given.orders
    try:
        for line in search(specs, given.dtype or DTYPES, orders, given.budget):
            print(line, flush=True)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return _USAGE
    return 0


def _say_if_busy(shown: Progress) -> None:
    """Warn that the processor has other work, which spoils what is timed on it."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if load > _BUSY:
        shown.say(f"this machine is busy (load {load:.1f}): times will be unsteady")


def _write(
    specs: Iterable[OpSpec], key: str, path: Path, folder: Path, missing: list[Cell]
) -> None:
    """Write the table of every op whose coarse grid is measured.

    A table takes the place of a shipped one, so one with holes is worse than none.
    """
    records = ledger.read(path)
    for spec in specs:
        holes = sum(cell.spec is spec for cell in missing)
        text = tables.table_text(spec, key, records)
        if holes:
            print(
                f"{spec.op}: no table yet, {holes} coarse shapes are unmeasured",
                file=sys.stderr,
            )
        elif text:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{spec.op}.{key}.txt"
            file.write_text(text, encoding="utf-8")
            print(file)


def _check(
    specs: Iterable[OpSpec], device: str | None, folder: Path, path: Path | None
) -> int:
    """Compare tables with what their ledger gives; staleness is only a warning."""
    key = device or (path.stem if path else targets()[0].device.key)
    records = ledger.read(path or folder / f"{key}.jsonl")
    status = 0
    for spec in specs:
        file = folder / f"{spec.op}.{key}.txt"
        text = tables.table_text(spec, key, records)
        present = file.read_text(encoding="utf-8") if file.exists() else ""
        if tables.without_commit(present) != tables.without_commit(text):
            print(f"{file}: not what the ledger gives", file=sys.stderr)
            status = 1
        elif any(not r.is_current for r in records if r.op == spec.op):
            print(f"{file}: stale, measured with other kernels", file=sys.stderr)
    return status


def _commit() -> str:
    """Return the checkout's commit, or zeros outside of one."""
    package = Path(batchlas.__file__).parent
    if shutil.which("git") is None:
        return "0000000"
    answer = subprocess.run(
        ["git", "-C", str(package), "rev-parse", "--short=7", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or "0000000"
