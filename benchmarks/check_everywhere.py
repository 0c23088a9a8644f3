"""No shape of NumPy arrays is slower than with NumPy, and no order falls off a cliff.

First, every order with every batch: our time against numpy.linalg's in one process, in
turns, through the tables in force. Second, orders one after the other: the step in time
per n^3 and matrix from each order to the next. Prints what falls short of the bars, and
the worst of each; exits with 1 if something does.

The shortest measurement says it: a machine's other work only ever adds time.

Run: python benchmarks/check_everywhere.py [--functions eigh] [--dtypes float64]
"""

from __future__ import annotations

import argparse
import time
from itertools import pairwise

import numpy as np

import batchlas

FUNCTIONS = "cholesky,eigh,eigvalsh,svd,svdvals"
ORDERS = "1,2,3,4,5,6,8,9,12,16,17,24,32,33,48,64,65,96,128,129,192,256,512"
BATCHES = "1,2,4,8,16,32,64,128,256,1024,4096"
SLOWEST, STEEPEST = 0.95, 2.0
MOST_WORK = 2**25
"""n^3 batch of the largest shape: fractions of a second."""
STEP_ELEMENTS = 400_000


def stack(n: int, batch: int, dtype: str):
    rng = np.random.default_rng(0)
    b = rng.standard_normal((batch, n, n))
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal(b.shape)
    return (b @ b.swapaxes(-1, -2).conj() + n * np.eye(n)).astype(dtype)


def shortest(calls, a, seconds: float) -> list[float]:
    """Return each call's shortest time; they take turns of several calls."""
    best = [float("inf")] * len(calls)
    counts = [1] * len(calls)
    for which, call in enumerate(calls):
        call(a)
        start = time.perf_counter()
        call(a)
        counts[which] = max(1, int(2e-3 / (time.perf_counter() - start)))
    end = time.perf_counter() + seconds
    rounds = 0
    while rounds < 3 or time.perf_counter() < end:
        for which, call in enumerate(calls):
            start = time.perf_counter()
            for _ in range(counts[which]):
                call(a)
            spent = (time.perf_counter() - start) / counts[which]
            best[which] = min(best[which], spent)
        rounds += 1
    return best


def check_floor(function: str, dtype: str, given) -> bool:
    """Compare with NumPy at every order and batch; say whether all is well."""
    calls = [getattr(each.linalg, function) for each in (batchlas, np)]
    ratios = {}
    for n in given.orders:
        for batch in given.batches:
            if n**3 * batch <= MOST_WORK or batch == 1:
                a = stack(n, batch, dtype)
                ours, numpys = shortest(calls, a, given.seconds)
                ratios[n, batch] = numpys / ours
                if numpys / ours < SLOWEST:  # once more: was it the machine?
                    ours, numpys = shortest(calls, a, 4 * given.seconds)
                    ratios[n, batch] = numpys / ours
    for (n, batch), ratio in ratios.items():
        if ratio < SLOWEST:
            a = stack(n, batch, dtype)
            choice = batchlas.explain(function, a).choice
            print(f"{function} {dtype} {batch}x{n}x{n}: {ratio:.2f} by {choice}")
    worst = min(ratios, key=ratios.__getitem__)
    print(f"{function} {dtype}: worst {ratios[worst]:.2f} of {len(ratios)}", flush=True)
    return ratios[worst] >= SLOWEST


def check_steps(function: str, dtype: str, given) -> bool:
    """Compare neighbouring orders; say whether all is well."""
    call = getattr(batchlas.linalg, function)
    per_work = []
    for n in range(1, given.up_to + 1):
        batch = 64 * max(1, STEP_ELEMENTS // (64 * n**2))
        (seconds,) = shortest([call], stack(n, batch, dtype), given.seconds)
        per_work.append(seconds / batch / n**3)
    steps = [(max(b / a, 1.0), n) for n, (a, b) in enumerate(pairwise(per_work), 2)]
    for step, n in steps:
        if step > STEEPEST:
            print(
                f"{function} {dtype}: n = {n} takes {step:.2f} of n = {n - 1} per n^3"
            )
    step, n = max(steps)
    print(f"{function} {dtype}: steepest step {step:.2f}, to n = {n}", flush=True)
    return step <= STEEPEST


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", default=FUNCTIONS)
    parser.add_argument("--dtypes", default="float64,float32")
    parser.add_argument("--orders", type=numbers, default=numbers(ORDERS))
    parser.add_argument("--batches", type=numbers, default=numbers(BATCHES))
    parser.add_argument("--up-to", type=int, default=128, help="last order of steps")
    parser.add_argument("--seconds", type=float, default=0.02, help="per shape")
    given = parser.parse_args()
    good = True
    for function in given.functions.split(","):
        for dtype in given.dtypes.split(","):
            good &= check_floor(function, dtype, given)
            if given.up_to > 1:
                good &= check_steps(function, dtype, given)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
