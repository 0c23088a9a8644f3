"""SVD of NumPy arrays against numpy.linalg, at about 400,000 elements.

Both sides take turns in one process (`turns`). NumPy's time is the better of one BLAS
thread and all of them, on as many matrices as take it about 0.1 s.

Where others work on the machine, the clock on the wall favours NumPy, which needs one
core only. ``--busy`` compares processor time instead: ours over the number of cores,
since kernels keep all of them busy, with NumPy's on one BLAS thread.

Prints medians in microseconds per matrix, the ratio, and the choice that ran; with
``--pins`` every native candidate instead of the tables' choice, with ``--values``
singular values only.

Run: python benchmarks/bench_svd.py [--orders 2,3,4] [--dtypes float64] [--pins]
"""

from __future__ import annotations

import argparse
import os
import time
from statistics import median

import numpy as np
import threadpoolctl
from turns import turn

import batchlas
from batchlas._ops.gesvd import GesvdCall, can_run, candidates
from batchlas._select import ScopedPin

ORDERS = "2,3,4,8,16,32,64"
DTYPES = "float64,float32,complex128,complex64"
ELEMENTS = 400_000
# Times faster than NumPy that are asked for, at the orders above; complex: half.
BARS = {
    "float64": (60, 35, 22, 12, 8, 5, 3),
    "float32": (100, 55, 35, 18, 12, 8, 5),
}
TURNS, CALLS, NUMPY_SECONDS = 3, 4, 0.1


def bar_of(dtype: str, n: int) -> float | str:
    orders = [int(each) for each in ORDERS.split(",")]
    if n not in orders:
        return "-"
    whole = {"complex128": "float64", "complex64": "float32"}.get(dtype, dtype)
    bar = BARS[whole][orders.index(n)]
    return bar if whole == dtype else bar / 2


def stack(n: int, dtype: str):
    rng = np.random.default_rng(0)
    a = rng.standard_normal((max(1, ELEMENTS // n**2), n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(a.shape)
    return a.astype(dtype)


def us_per_matrix(call, a, clock, cores=1) -> list[float]:
    """Return the microseconds per matrix of each call of a turn but the first."""
    return [1e6 * each / len(a) / cores for each in turn(call, a, CALLS, clock)]


def pinned(function, pin: str | None):
    def call(a) -> None:
        if pin is None:
            function(a)
            return
        with ScopedPin("gesvd", pin):
            function(a)

    return call


def fewer(call, a):
    """Return as many matrices as take a call about `NUMPY_SECONDS`."""
    start = time.perf_counter()
    call(a[:64])
    each = (time.perf_counter() - start) / len(a[:64])
    return a[: max(16, int(NUMPY_SECONDS / each))]


def compare(a, pins, *, values: bool, busy: bool):
    """Return us of each pin, then of NumPy with one BLAS thread and with all."""
    ours = batchlas.linalg.svdvals if values else batchlas.linalg.svd
    theirs = np.linalg.svdvals if values else np.linalg.svd
    calls = [pinned(ours, pin) for pin in pins]
    for call in calls:
        call(a)
        call(a)
    with threadpoolctl.threadpool_limits(1, "blas"):
        few = fewer(theirs, a)
    times = [[] for _ in range(len(calls) + 2)]
    clock = time.process_time if busy else time.perf_counter
    cores = len(os.sched_getaffinity(0)) if busy else 1
    for _ in range(TURNS):
        for call, record in zip(calls, times, strict=False):
            record.extend(us_per_matrix(call, a, clock, cores))
        with threadpoolctl.threadpool_limits(1, "blas"):
            times[-2].extend(us_per_matrix(theirs, few, clock))
        fewest = few[: max(16, len(few) // 4)]
        times[-1].extend(us_per_matrix(theirs, fewest, clock))
    return [(median(each), min(each)) for each in times]


def pins_for(a, *, values: bool) -> list[str]:
    """Return the spellings of the native candidates that can run."""
    n, dtype = a.shape[-1], a.dtype.name
    call = GesvdCall(dtype, "numpy", "none" if values else "all", n, n, len(a))
    device = batchlas._backends.numpy.device(a)
    native = [c for c in candidates(dtype, "numpy") if not c.uses_library]
    return [str(choice) for choice in native if can_run(choice, call, device)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", default=ORDERS)
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--pins", action="store_true")
    parser.add_argument("--values", action="store_true")
    parser.add_argument("--busy", action="store_true")
    given = parser.parse_args()
    print("dtype, n, NumPy's us per matrix with one BLAS thread and with all;")
    print("then us per matrix, times faster by medians (by minima)")
    for dtype in given.dtypes.split(","):
        for n in map(int, given.orders.split(",")):
            a = stack(n, dtype)
            name = "svdvals" if given.values else "svd"
            choice = batchlas.explain(name, a).choice
            pins = pins_for(a, values=given.values) if given.pins else [None]
            *ours, one, every = compare(a, pins, values=given.values, busy=given.busy)
            best = min(one, every)
            row = "  ".join(
                f"{pin or choice} {us:.3g} {best[0] / us:.1f}x ({best[1] / least:.1f})"
                for pin, (us, least) in zip(pins, ours, strict=True)
            )
            print(f"{dtype:<11}{n:>4}{one[0]:9.4g}{every[0]:9.4g}  {row}", end="")
            print(f"  bar {bar_of(dtype, n)}", flush=True)


if __name__ == "__main__":
    main()
