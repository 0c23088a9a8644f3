"""eigh and eigvalsh of NumPy arrays against numpy.linalg, at about 400,000 elements.

Both sides take turns in one process (`turns`). NumPy's time is the better of one BLAS
thread and all of them.

Prints for each order NumPy's time per matrix, then for our choice its time per matrix
and how many times faster it is, by medians and by minima, and the bar; with ``--pins``
every native candidate instead of the tables' choice. The column ``n^3`` is our time per
n^3, which should not step by more than two between neighbouring orders.

Run: python benchmarks/bench_eigh.py [--functions eigh] [--orders 2,3] [--dtypes
float64] [--pins]
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np
from turns import race

import batchlas
from batchlas._backends import numpy as backend
from batchlas._ops.families import Threads, Vendor
from batchlas._ops.syev import can_run, candidates, key_of
from batchlas._select import ScopedPin

ORDERS = "2,3,4,8,16,32,64"
ELEMENTS = 400_000
# Times faster than NumPy that are asked for, at the orders above.
BARS = {
    ("eigh", "float64"): (60, 28, 20, 12, 8, 5, 3),
    ("eigh", "float32"): (100, 45, 30, 16, 12, 8, 5),
    ("eigvalsh", "float64"): (45, 25, 16, 10, 7, 5, 3),
}
TURNS, CALLS = 3, 5


def bar_of(function: str, dtype: str, n: int) -> float | str:
    """Return the bar; half of float64's for complex numbers."""
    orders = [int(each) for each in ORDERS.split(",")]
    share = 0.5 if dtype.startswith("complex") else 1
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    known = BARS.get((function, real))
    return share * known[orders.index(n)] if known and n in orders else "-"


def stack(n: int, dtype: str):
    rng = np.random.default_rng(0)
    shape = (max(1, ELEMENTS // n**2), n, n)
    a = rng.standard_normal(shape).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(shape).astype(a.real.dtype)
    return np.ascontiguousarray(a + a.swapaxes(-1, -2).conj())


def pinned(function: str, pin: str | None):
    ours = getattr(batchlas.linalg, function)
    if pin is None:
        return ours

    def call(a) -> None:
        with ScopedPin("syev", pin):
            ours(a)

    return call


def pins_of(function: str, a) -> list[str]:
    """Return every native candidate that can run."""
    call = key_of(backend, a, vectors=function == "eigh")
    every = candidates(call.dtype, "numpy")
    native = [c for c in every if c.name not in (Vendor.name, Threads.name)]
    return [str(c) for c in native if can_run(c, call, backend.device(a))]


def compare(function: str, a, pins):
    """Return seconds of each pin, then of NumPy with one BLAS thread and with all."""
    ours = [pinned(function, pin) for pin in pins]
    return race(ours, getattr(np.linalg, function), a, TURNS, CALLS)


def report(function: str, dtype: str, n: int, *, every: bool) -> None:
    a = stack(n, dtype)
    pins = pins_of(function, a) if every else [None]
    *ours, one, full = compare(function, a, pins)
    best = min(one, full, key=median)
    scale = 1e6 / len(a)
    print(f"{function:<9}{dtype:<11}{n:>4}{scale * median(best):9.2f}", end="")
    for pin, record in zip(pins, ours, strict=True):
        name = pin or batchlas.explain(function, a).choice
        mid, least = median(best) / median(record), min(best) / min(record)
        cubic = 1e3 * scale * median(record) / n**3
        spent = f"{scale * median(record):.3f} us {cubic:.3f} n^3"
        print(f"  {name} {spent} {mid:.1f}x {least:.1f}x", end="")
    print(f"  bar {bar_of(function, dtype, n)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", default="eigh,eigvalsh")
    parser.add_argument("--orders", default=ORDERS)
    parser.add_argument("--dtypes", default="float64,float32")
    parser.add_argument("--pins", action="store_true")
    given = parser.parse_args()
    print(
        "function dtype n, NumPy's us; then us, ns / n^3, times faster: medians, minima"
    )
    for function in given.functions.split(","):
        for dtype in given.dtypes.split(","):
            for n in map(int, given.orders.split(",")):
                report(function, dtype, n, every=given.pins)


if __name__ == "__main__":
    main()
