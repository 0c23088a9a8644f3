"""The main job on a real photograph: every figure printed is measured in this run.

Forms the structure tensor of each pixel and the covariances of patches, runs eigh, svd
and cholesky on these stacks as NumPy arrays and as dpnp arrays, checks every result
against its definition, prints the times beside NumPy's, and saves a picture. The exit
status is 1 if one matrix of one result is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import threadpoolctl
from demo_checks import LIMIT, Report, check
from demo_photograph import Stack, maps_of, photograph, save_picture, stacks_of
from rich.console import Console
from rich.table import Table

import batchlas

if TYPE_CHECKING:
    from collections.abc import Callable

FUNCTIONS = ("eigh", "svd", "cholesky")
# Matrices in the call that tells how many can be afforded, and the fewest ever taken.
PROBE, FEWEST = 256, 1000


class ArrayKind(NamedTuple):
    """One library's arrays: how to make one, read one, and wait for one."""

    name: str
    lift: Callable[[Any], Any]
    lower: Callable[[Any], Any]
    wait: Callable[[Any], None]
    takes_all: bool
    """Whether every matrix is computed, however long it takes."""


class Effort(NamedTuple):
    """How long to measure."""

    rounds: int
    call_budget_s: float
    """The longest one call may take; only kinds that do not take all heed it."""


class Row(NamedTuple):
    """One measured line of a table."""

    function: str
    count: int
    total: int
    order: int
    choice: str
    ours_s: float
    numpy_s: float
    report: Report


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; return the process's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out/demo.png"))
    parser.add_argument("--quick", action="store_true", help="a part of the photograph")
    given = parser.parse_args(arguments)
    # A width of its own where the output goes into a file.
    console = Console(width=None if sys.stdout.isatty() else 112, highlight=False)
    effort = Effort(3, 0.05) if given.quick else Effort(5, 0.25)

    image = photograph(quick=given.quick)
    stacks = stacks_of(image)
    introduce(console, image, stacks)
    faults: list[str] = []
    for kind in array_kinds(console):
        rows = [
            measure(kind, function, stack, effort)
            for stack in stacks
            for function in FUNCTIONS
        ]
        console.print(table_of(kind, stacks, rows, effort))
        faults += [f"{kind.name} {fault}" for row in rows for fault in faults_of(row)]

    tensors = stacks[0].matrices
    eigenpairs = batchlas.linalg.eigh(tensors)
    faults += [
        f"picture: {fault}" for fault in check("eigh", tensors, eigenpairs).faults
    ]
    save_picture(image, maps_of(*eigenpairs, image.shape), given.out)
    console.print(f"Picture: {given.out}", markup=False)
    return conclude(console, faults)


def introduce(console: Console, image: Any, stacks: list[Stack]) -> None:
    """Say what is computed on which machine."""
    height, width = image.shape
    console.print(
        f"[bold]batchlas {batchlas.__version__}[/] on scikit-image's photograph of a "
        f"cameraman, {width} x {height} pixels"
    )
    for title, matrices in stacks:
        count, n, _ = matrices.shape
        console.print(f"  {count:>8,} of {n}x{n}: {title}")
    libraries = threadpoolctl.threadpool_info()
    threads = [lib["num_threads"] for lib in libraries if lib["user_api"] == "blas"]
    console.print(
        f"Machine: {device_of(stacks[0].matrices)}, {os.cpu_count()} processors; "
        f"NumPy {np.__version__}, {max(threads, default=1)} BLAS threads"
    )


def array_kinds(console: Console) -> list[ArrayKind]:
    """Return the kinds of array that this machine has; say what is missing."""
    kinds = [ArrayKind("NumPy", np.asarray, np.asarray, lambda _: None, True)]
    missing = None
    try:
        import dpctl
        import dpnp
    except ImportError:
        missing = "dpnp is not installed (pip install 'batchlas[sycl]')"
    else:
        if dpctl.get_devices():
            wait = _wait_for_queue
            kinds.append(ArrayKind("dpnp", dpnp.asarray, dpnp.asnumpy, wait, False))
        else:
            missing = "dpnp finds no device (python -m batchlas doctor says why)"
    if missing:
        # Not markup: the brackets in the command are meant.
        console.print(f"{missing}: NumPy arrays only.", style="yellow", markup=False)
    return kinds


def _wait_for_queue(array: Any) -> None:
    array.sycl_queue.wait()


def measure(kind: ArrayKind, function: str, stack: Stack, effort: Effort) -> Row:
    """Compute, check and time one function on one stack.

    The result that is checked is that of the first, untimed call, in which kernels are
    compiled. Then both sides alternate: a slow moment of the machine meets both.
    """
    ours = getattr(batchlas.linalg, function)
    numpys = getattr(np.linalg, function)
    host = affordable(kind, ours, stack.matrices, effort)
    array = kind.lift(host)
    result = ours(array)
    outputs = result if isinstance(result, tuple) else (result,)
    if any(type(output) is not type(array) for output in outputs):
        kinds = ", ".join(type(output).__name__ for output in outputs)
        report = Report(np.nan, None, (f"a {kinds} came back for {kind.name}",))
    else:
        lowered = tuple(kind.lower(output) for output in outputs)
        report = check(function, host, lowered)
    ours_s, numpy_s = paired_medians(
        lambda: finished(kind, ours, array), lambda: numpys(host), effort.rounds
    )
    choice = batchlas.explain(function, array).choice
    total, order, _ = stack.matrices.shape
    return Row(function, len(host), total, order, choice, ours_s, numpy_s, report)


def affordable(kind: ArrayKind, function: Any, matrices: Any, effort: Effort) -> Any:
    """Return all matrices, or as many as one call can do in the time it may take.

    dpnp's own eigh and svd take tens of microseconds per matrix, however small it is:
    all rounds over all pixels would take minutes. The matrices that are taken lie
    evenly spread over the photograph.
    """
    if kind.takes_all:
        return matrices
    probe = kind.lift(matrices[:PROBE])
    finished(kind, function, probe)
    probe_s = elapsed(lambda: finished(kind, function, probe))
    all_s = probe_s * len(matrices) / PROBE
    step = int(np.ceil(all_s / effort.call_budget_s))
    step = max(1, min(step, len(matrices) // FEWEST))
    return np.ascontiguousarray(matrices[::step])


def finished(kind: ArrayKind, function: Any, array: Any) -> None:
    """Call a function and wait until its results are there."""
    result = function(array)
    kind.wait(result[0] if isinstance(result, tuple) else result)


def paired_medians(
    ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int
) -> tuple[float, float]:
    """Return the median times of two calls in seconds, measured in turn."""
    theirs()
    pairs = [(elapsed(ours), elapsed(theirs)) for _ in range(rounds)]
    mine, others = zip(*pairs, strict=True)
    return median(mine), median(others)


def elapsed(call: Callable[[], Any]) -> float:
    """Return how long one call takes, in seconds."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def device_of(array: Any) -> str:
    """Return the device's key and name, as explain gives them."""
    lines = batchlas.explain("eigh", array).text.splitlines()
    (line,) = (line for line in lines if line.strip().startswith("device"))
    return line.strip().removeprefix("device").strip()


def table_of(
    kind: ArrayKind, stacks: list[Stack], rows: list[Row], effort: Effort
) -> Table:
    """Lay out the rows of one kind of array, a section per stack."""
    device = device_of(kind.lift(stacks[0].matrices[:PROBE]))
    table = Table(
        title=f"\n{kind.name} arrays, {device}",
        title_style="bold",
        caption=_caption(kind, rows, effort),
        caption_justify="left",
    )
    table.add_column("matrices", no_wrap=True)
    table.add_column("function", style="bold")
    table.add_column("choice")
    for heading in ("batchlas", "NumPy", "speed-up", "residual", "orthogonal"):
        table.add_column(heading, justify="right")
    for index, row in enumerate(rows):
        last = index + 1 == len(rows) or rows[index + 1].order != row.order
        table.add_row(*_cells(row), end_section=last)
    return table


def _cells(row: Row) -> list[str]:
    """Write one row out."""
    some = "" if row.count == row.total else f" / {row.total:,}"
    residual, orthogonality, faults = row.report
    n = row.order
    bad = "[bold red]WRONG [/]" if faults else ""
    return [
        f"{row.count:,}{some} of {n}x{n}",
        row.function,
        row.choice,
        f"{row.ours_s * 1e3:,.1f} ms",
        f"{row.numpy_s * 1e3:,.1f} ms",
        f"{row.numpy_s / row.ours_s:.2f} x",
        f"{bad}{residual:.2g}",
        "" if orthogonality is None else f"{orthogonality:.2g}",
    ]


def _caption(kind: ArrayKind, rows: list[Row], effort: Effort) -> str:
    """Say what the figures mean, and which matrices were left out."""
    times = (
        f"Times: medians of {effort.rounds} calls each, taken in turn in one process, "
        "after one untimed call; speed-up: NumPy's time by batchlas'."
    )
    errors = (
        "Residual, orthogonal: the worst of all matrices computed, in n eps and the "
        f"1-norm; at most {LIMIT:g} allowed."
    )
    choice = (
        "Choice: what batchlas.explain reports; vendor is the LAPACK of "
        f"{kind.name.lower()}.linalg."
    )
    lines = [times, errors, choice]
    if kind.name != "NumPy":
        lines.append("NumPy: the same matrices as NumPy arrays.")
    if any(row.count < row.total for row in rows):
        lines.append(
            "k / N: k evenly spread matrices of N, as many as one call was thought to "
            f"do in {effort.call_budget_s:g} s."
        )
    return "\n".join(lines)


def faults_of(row: Row) -> list[str]:
    """Return a row's violations, each with the function and the order."""
    what = f"{row.function} of {row.order}x{row.order}"
    return [f"{what}: {fault}" for fault in row.report.faults]


def conclude(console: Console, faults: list[str]) -> int:
    """Say whether everything was right; return the exit status."""
    if not faults:
        console.print("[green]Every matrix of every result meets its definition.[/]")
        return 0
    for fault in faults:
        print(f"WRONG: {fault}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
