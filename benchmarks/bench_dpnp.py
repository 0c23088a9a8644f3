"""Cholesky, eigh and svd of dpnp arrays against dpnp.linalg.

Both sides take turns in one process (`turns`), and each waits for its queue. dpnp
factors a stack at once, and gets the same one as we, of 3 million elements. Its eigh
and svd go matrix by matrix: of our 400,000 elements they get at most 400 matrices, and
their time is scaled to the whole stack.

Prints medians in milliseconds, the ratio and the bar.

Run: python benchmarks/bench_dpnp.py [--functions eigh] [--orders 2,3] [--dtypes ...]
"""

from __future__ import annotations

import argparse
from statistics import median

import numpy as np
from turns import turn

import batchlas  # before dpnp: it makes a CPU device visible

import dpnp  # isort: skip

ELEMENTS = {"cholesky": 3_000_000, "eigh": 400_000, "svd": 400_000}
MOST_ONE_BY_ONE = 400
# Times faster than dpnp that are asked for.
BARS = {"cholesky": 20, "eigh": 50, "svd": 20}
ORDERS = "2,3,4,8,12,16"
DTYPES = "float64,float32,complex128,complex64"
TURNS, CALLS = 3, 5


def stack(function: str, n: int, dtype: str):
    rng = np.random.default_rng(0)
    b = rng.standard_normal((ELEMENTS[function] // n**2, n, n))
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal(b.shape)
    if function == "eigh":
        b = (b + b.conj().swapaxes(-1, -2)) / 2
    if function == "cholesky":
        b = b @ b.conj().swapaxes(-1, -2) + n * np.eye(n)
    return b.astype(dtype)


def finished(namespace, function: str):
    """Return a call that ends when its queue has nothing to do."""
    compute = getattr(namespace, function)

    def call(a) -> None:
        result = compute(a)
        a.sycl_queue.wait()
        del result

    return call


def compare(function: str, n: int, dtype: str) -> tuple[float, float]:
    """Return ms of ours and of dpnp's for the whole stack."""
    a = dpnp.asarray(stack(function, n, dtype))
    few = a if function == "cholesky" else dpnp.copy(a[:MOST_ONE_BY_ONE])
    ours = finished(batchlas.linalg, function)
    theirs = finished(dpnp.linalg, function)
    times: tuple[list[float], list[float]] = [], []
    for _ in range(TURNS):
        times[0].extend(turn(ours, a, CALLS))
        times[1].extend(turn(theirs, few, CALLS))
    scale = len(a) / len(few)
    return 1e3 * median(times[0]), 1e3 * scale * median(times[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", default=",".join(BARS))
    parser.add_argument("--orders", default=ORDERS)
    parser.add_argument("--dtypes", default=DTYPES)
    given = parser.parse_args()
    print(f"{'function':<9}{'dtype':<11}{'n':>3}{'ours':>9}{'dpnp':>10}  ms")
    for function in given.functions.split(","):
        for dtype in given.dtypes.split(","):
            for n in map(int, given.orders.split(",")):
                ours, theirs = compare(function, n, dtype)
                print(
                    f"{function:<9}{dtype:<11}{n:>3}{ours:9.2f}{theirs:10.1f}"
                    f"  {theirs / ours:.1f}x  bar {BARS[function]}x",
                    flush=True,
                )


if __name__ == "__main__":
    main()
