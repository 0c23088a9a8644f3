"""Cholesky of NumPy arrays against numpy.linalg, at about 3 million elements.

Both sides take turns in one process (`turns`). NumPy's time is the better of one BLAS
thread and all of them.

Prints medians in milliseconds, the ratio, and the choice that ran; with ``--pins``
every candidate instead of the tables' choice.

Run: python benchmarks/bench_cholesky.py [--orders 2,3,4] [--dtypes float64] [--pins]
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np
from turns import race

import batchlas
from batchlas._select import ScopedPin

ORDERS = "2,3,4,8,16,32,64,128"
DTYPES = "float64,float32"
ELEMENTS = 3_000_000
# Times faster than NumPy that are asked for, at the orders above.
BARS = {
    "float64": (30, 22, 17, 7, 7, 6, 4.5, 2.5),
    "float32": (40, 40, 40, 20, 17, 8, 6, 3),
}


def bar_of(dtype: str, n: int) -> float | str:
    orders = [int(each) for each in ORDERS.split(",")]
    known = dtype in BARS and n in orders
    return BARS[dtype][orders.index(n)] if known else "-"


def stack(n: int, dtype: str):
    rng = np.random.default_rng(0)
    b = rng.standard_normal((max(1, ELEMENTS // n**2), n, n))
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal(b.shape)
    return (b @ b.swapaxes(-1, -2).conj() + n * np.eye(n)).astype(dtype)


TURNS, CALLS = 3, 6


def pinned(pin: str | None):
    def call(a) -> None:
        if pin is None:
            batchlas.linalg.cholesky(a)
            return
        with ScopedPin("potrf", pin):
            batchlas.linalg.cholesky(a)

    return call


def compare(a, pins):
    """Return ms of each pin, then of NumPy with one BLAS thread and with all."""
    times = race([pinned(pin) for pin in pins], np.linalg.cholesky, a, TURNS, CALLS)
    return [1e3 * median(each) for each in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", default=ORDERS)
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--pins", action="store_true")
    given = parser.parse_args()
    print(f"{'dtype':<11}{'n':>4}{'numpy 1':>9}{'all':>9}  ms; then ms, times faster")
    for dtype in given.dtypes.split(","):
        for n in map(int, given.orders.split(",")):
            a = stack(n, dtype)
            choice = batchlas.explain("cholesky", a).choice
            wide = 8 if np.dtype(dtype).name in ("float32", "complex64") else 4
            lanes = [f"lane:{w}:{ahead}" for w in (wide, 2 * wide) for ahead in (1, 0)]
            pins = lanes if given.pins else [None]
            *ours, one, every = compare(a, pins)
            best = min(one, every)
            row = "  ".join(
                f"{pin or choice} {ms:.2f} {best / ms:.1f}x"
                for pin, ms in zip(pins, ours, strict=True)
            )
            print(f"{dtype:<11}{n:>4}{one:9.2f}{every:9.2f}  {row}", end="")
            print(f"  bar {bar_of(dtype, n)}")


if __name__ == "__main__":
    main()
