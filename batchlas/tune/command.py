"""``python -m batchlas tune``: measure what is missing, then write the tables."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import batchlas
from batchlas import _dispatch
from batchlas.tune import ledger, tables
from batchlas.tune.grid import BATCHES, DTYPES, ORDERS, calls
from batchlas.tune.problems import placer
from batchlas.tune.timing import time_cell

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from batchlas._runtime.devices import Device
    from batchlas._select import OpSpec

_KINDS = ("numpy", "dpnp", "cupy")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    ops = [spec.op for spec in tables.specs()]
    parser.add_argument("--op", choices=ops, action="append", help="default: all")
    parser.add_argument("--dtype", choices=DTYPES, action="append", help="default: all")
    parser.add_argument("--array", choices=_KINDS, default="numpy")
    parser.add_argument(
        "--orders", type=_sizes, default=ORDERS, help="orders to measure: 2,3,4"
    )
    parser.add_argument(
        "--batches", type=_sizes, default=BATCHES, help="batches to measure: 1,64"
    )
    parser.add_argument(
        "--budget", type=float, default=600.0, help="seconds in all (default 600)"
    )
    parser.add_argument(
        "--cell", type=float, default=0.1, help="seconds per shape (default 0.1)"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("tuned"), help="folder of the tables"
    )
    parser.add_argument(
        "--ledger", type=Path, help="what was measured (default: ledger.jsonl in --out)"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="measure nothing; exit with 1 if the tables are not the ledger's",
    )


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(each) for each in text.split(","))
    if min(sizes) < 1:
        message = f"{text!r} has a size below 1"
        raise ValueError(message)
    return sizes


def run(given: argparse.Namespace) -> int:
    """Carry the subcommand out; return the exit status."""
    specs = [s for s in tables.specs() if given.op is None or s.op in given.op]
    path = given.ledger or given.out / "ledger.jsonl"
    device = _device(given.array)
    if not given.check:
        _measure(specs, given, device, path)
    stale = [
        name
        for name, text in _texts(specs, device, ledger.read(path))
        if _write(given.out / name, text, check=given.check)
    ]
    for name in stale:
        print(f"{name}: not what the ledger gives", file=sys.stderr)
    return 1 if stale else 0


def _measure(
    specs: list[OpSpec], given: argparse.Namespace, device: Device, path: Path
) -> None:
    """Time the cells that the ledger lacks until the budget is spent."""
    fidelity = max(1, round(given.cell * 1e3))
    known = {r.cell: r for r in ledger.read(path)}
    end = time.monotonic() + given.budget
    shapes = given.orders, given.batches
    todo = [
        (spec, call)
        for spec in specs
        for dtype in given.dtype or DTYPES
        for call in calls(spec, dtype, device.kind, *shapes)
    ]
    for done, (spec, call) in enumerate(todo):
        if time.monotonic() > end:
            print(f"\nbudget spent: {done} of {len(todo)} shapes", file=sys.stderr)
            return
        kernels = tables.kernels_hash(spec.op)
        record = ledger.Record(
            spec.op, device.key, call._asdict(), {}, fidelity, kernels
        )
        old = known.get(record.cell)
        if old and old.fidelity >= fidelity and old.kernels == kernels:
            continue
        candidates = [
            c
            for c in spec.candidates(call.dtype, call.array)
            if spec.can_run(c, call, device)
        ]
        record.times.update(time_cell(spec, call, candidates, budget_s=given.cell))
        ledger.append(path, record)
        print(f"\r{done + 1}/{len(todo)} {spec.op} {call}", end="", file=sys.stderr)
    print(file=sys.stderr)


def _texts(
    specs: list[OpSpec], device: Device, records: list[ledger.Record]
) -> Iterator[tuple[str, str]]:
    for spec in specs:
        yield (
            f"{spec.op}.{device.key}.txt",
            tables.table_text(spec, device.key, _commit(), records),
        )


def _write(path: Path, text: str, *, check: bool) -> bool:
    """Write a table; with `check` only say whether the rows on disk differ."""
    if not check:
        path.write_text(text, encoding="utf-8")
        return False
    present = path.read_text(encoding="utf-8") if path.exists() else ""
    return present.splitlines()[1:] != text.splitlines()[1:]  # the commit may differ


def _device(kind: str) -> Device:
    """Return the device that arrays of a kind live on by default."""
    a = placer(kind)(np.ones((1, 1)))
    backend = _dispatch.backend_of(a)
    if backend is None:
        message = f"no backend for {kind} arrays"
        raise RuntimeError(message)
    return backend.device(a)


def _commit() -> str:
    """Return the checkout's commit, or zeros outside of one."""
    folder = Path(batchlas.__file__).parent
    answer = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "--short=7", "HEAD"],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or "0000000"
