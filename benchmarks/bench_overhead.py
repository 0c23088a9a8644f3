"""What a batchlas call costs beyond the numpy.linalg call that it ends in.

Both sides run in turns in one process on the same small stack, pinned to ``vendor``, so
that the difference is dispatch, selection, the finiteness check and result handling.
Prints medians in microseconds. The bar: at most 10 us more.

Run: python benchmarks/bench_overhead.py
"""

from __future__ import annotations

import time
from functools import partial
from statistics import median

import numpy as np

import batchlas

SHAPES = ((1, 2, 2), (8, 4, 4), (8, 8, 8), (64, 4, 4))
FUNCTIONS = ("cholesky", "eigh", "eigvalsh", "svd", "svdvals")
PINS = {f"BATCHLAS_{op}_ROUTE": "vendor" for op in ("POTRF", "SYEV", "GESVD")}


def paired(ours, theirs, rounds: int = 3000) -> tuple[float, float]:
    """Return the median microseconds of two calls that take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, record in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            call()
            record.append(time.perf_counter() - start)
    return median(times[0]) * 1e6, median(times[1]) * 1e6


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'shape':<12}{'function':<10}{'batchlas':>10}{'numpy':>10}{'more':>8}  us")
    with batchlas.scoped_env(**PINS):
        for shape in SHAPES:
            b = rng.standard_normal(shape)
            a = b @ b.swapaxes(-1, -2) + shape[-1] * np.eye(shape[-1])
            for name in FUNCTIONS:
                ours, theirs = vars(batchlas.linalg)[name], vars(np.linalg)[name]
                mine, vendor = paired(partial(ours, a), partial(theirs, a))
                more = mine - vendor
                print(f"{shape!s:<12}{name:<10}{mine:10.1f}{vendor:10.1f}{more:8.1f}")


if __name__ == "__main__":
    main()
