"""LAPACK over slices of the batch in threads against LAPACK as NumPy calls it.

Family ``threads`` and numpy.linalg with one BLAS thread take turns in one process, a
turn being several calls of which the first does not count. numpy.linalg with all BLAS
threads comes last: they spin for some time after a call, on cores that others need.

Prints medians in milliseconds, then how many times faster than one BLAS thread the
threads are, by medians and by the best calls: other users of the machine lengthen the
calls that need both cores most. The bar on two cores: 1.7 for eigh and svd, n >= 16.

Run: python benchmarks/bench_threads.py
"""

from __future__ import annotations

from statistics import median

import numpy as np
import threadpoolctl
from turns import turn

import batchlas

ORDERS = (4, 8, 16, 32, 64, 128)
OPS = {"cholesky": "POTRF", "eigh": "SYEV", "svd": "GESVD"}
ELEMENTS = 400_000
TURNS, CALLS = 6, 5


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
                for _ in range(TURNS):
                    times[0].extend(turn(function, a, CALLS))
                    with threadpoolctl.threadpool_limits(1, "blas"):
                        times[1].extend(turn(theirs, a, CALLS))
                times[2].extend(turn(theirs, a, CALLS))
            ours, one, every = (1e3 * median(each) for each in times)
            row = f"{ours:10.2f}{one:10.2f}{every:10.2f}"
            print(
                f"{name:<10}{n:>4}{row}{one / ours:8.2f}{min(one, every) / ours:8.2f}"
            )


if __name__ == "__main__":
    main()
