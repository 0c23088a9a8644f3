"""LAPACK over slices of the batch in threads against LAPACK as NumPy calls it.

The sides take turns in one process: family ``threads``, family ``vendor`` with one BLAS
thread, and with all. Prints medians in milliseconds and the ratio to the better of the
two. The bar on two cores: 1.7 for eigh and svd at n >= 16, against one thread.

Run: python benchmarks/bench_threads.py
"""

from __future__ import annotations

import time
from statistics import median

import numpy as np
import threadpoolctl

import batchlas

ORDERS = (4, 8, 16, 32, 64, 128)
OPS = {"cholesky": "POTRF", "eigh": "SYEV", "svd": "GESVD"}
ELEMENTS = 400_000


def seconds(call, a) -> float:
    start = time.perf_counter()
    call(a)
    return time.perf_counter() - start


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'':<10}{'n':>4}{'threads':>10}{'1 BLAS':>10}{'all BLAS':>10}  ms, ratios")
    for name, op in OPS.items():
        function, theirs = vars(batchlas.linalg)[name], vars(np.linalg)[name]
        for n in ORDERS:
            b = rng.standard_normal((max(8, ELEMENTS // n**2), n, n))
            a = b @ b.swapaxes(-1, -2) + n * np.eye(n)
            times: tuple[list[float], ...] = ([], [], [])
            with batchlas.scoped_env(**{f"BATCHLAS_{op}_ROUTE": "threads"}):
                for _ in range(9):
                    times[0].append(seconds(function, a))
                    with threadpoolctl.threadpool_limits(1, "blas"):
                        times[1].append(seconds(theirs, a))
                    times[2].append(seconds(theirs, a))
            ours, one, every = (1e3 * median(each) for each in times)
            row = f"{ours:10.2f}{one:10.2f}{every:10.2f}"
            print(
                f"{name:<10}{n:>4}{row}{one / ours:8.2f}{min(one, every) / ours:8.2f}"
            )


if __name__ == "__main__":
    main()
