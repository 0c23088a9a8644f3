"""Check and time the cuSOLVER adapter on a GPU: ``python benchmarks/h200_vendor.py``.

First correctness, on one stack per op, dtype and order; then, as information, hard
scales and the batches that cuSOLVER's batched eigensolver accepts; then medians by CUDA
events against cupy.linalg. One line per result; ``--json PATH`` also writes them as
JSON lines. The exit status is the number of failed checks, 99 at most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import cupy
import numpy as np

from batchlas._vendor import cusolver, xsyevbatched

if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[], tuple[float, cupy.ndarray]]

ORDERS = (1, 2, 3, 4, 8, 16, 17, 32, 33, 64, 100)
TIMED_ORDERS = (2, 3, 4, 8, 16, 24, 32, 33, 48, 64, 128, 256)
ELEMENTS = 1 << 20
# One gesvd per matrix takes about a millisecond: fewer matrices there.
SVD_ELEMENTS = 1 << 16
GATE = 64
SCALES = {"d": (1e-300, 1e-160, 1e160, 1e300), "f": (1e-36, 1e-22, 1e18, 1e36)}

results: list[dict[str, object]] = []


def report(**fields: object) -> None:
    """Print one result and keep it."""
    results.append(fields)
    print(" ".join(f"{k}={v}" for k, v in fields.items()), flush=True)


def stack(batch: int, m: int, n: int, char: str) -> cupy.ndarray:
    """Return random matrices."""
    rng = cupy.random.default_rng(7)
    a = rng.standard_normal((batch, m, n))
    if char in "FD":
        a = a + 1j * rng.standard_normal((batch, m, n))
    return a.astype(char)


def definite(batch: int, n: int, char: str) -> cupy.ndarray:
    """Return positive definite matrices of norm about 1."""
    a = stack(batch, n, n, "D" if char in "FD" else "d")
    a = a @ a.conj().swapaxes(-1, -2) / (4 * n) + cupy.eye(n)
    return a.astype(char)


def symmetric(batch: int, n: int, char: str) -> cupy.ndarray:
    """Return indefinite Hermitian matrices."""
    a = stack(batch, n, n, char)
    return a + a.conj().swapaxes(-1, -2)


def error_of(product: cupy.ndarray, a: cupy.ndarray) -> float:
    """Return the worst error of any matrix in units of n * rounding * 1-norm."""
    scale = cupy.abs(a).sum(-2).max(-1)
    errors = cupy.abs(product - a).max((-1, -2)) / scale
    rounding = float(np.finfo(a.dtype).eps) / 2
    return float(errors.max()) / (max(a.shape[-2:]) * rounding)


def in_double(x: cupy.ndarray) -> cupy.ndarray:
    """Return `x` in double precision, so that the check adds no error."""
    return x.astype(np.result_type(x.dtype, "d"))


def potrf_check(a: cupy.ndarray, uplo: str) -> tuple[float, cupy.ndarray]:
    """Return the error of the factors, and info."""
    factor, info = cusolver.potrf(a, uplo)
    f = in_double(factor)
    f = f if uplo == "L" else f.conj().swapaxes(-1, -2)
    return error_of(f @ f.conj().swapaxes(-1, -2), a), info


def syev_check(a: cupy.ndarray, uplo: str) -> tuple[float, cupy.ndarray]:
    """Return the error of the reconstruction, and info."""
    w, v, info = cusolver.syev(a, uplo, vectors=True)
    v = in_double(v)
    return error_of((v * w[..., None, :]) @ v.conj().swapaxes(-1, -2), a), info


def gesvd_check(a: cupy.ndarray, job: str) -> tuple[float, cupy.ndarray]:
    """Return the error of the reconstruction, and info."""
    u, s, vh, info = cusolver.gesvd(a, job)
    k = s.shape[-1]
    return error_of((in_double(u)[..., :k] * s[..., None, :]) @ vh[..., :k, :], a), info


def check(name: str, a: cupy.ndarray, call: Check) -> bool:
    """Run one check; a failure is reported, not raised, so that the rest still runs."""
    head = {"check": name, "dtype": a.dtype.char, "shape": "x".join(map(str, a.shape))}
    try:
        error, info = call()
        failed = int(cupy.count_nonzero(info))
    except Exception as problem:  # noqa: BLE001 - any of them is the finding
        report(**head, ok=False, problem=f"{type(problem).__name__}: {problem}")
        return False
    good = error <= GATE and failed == 0
    report(**head, ok=good, error=f"{error:.2f}", failed=failed)
    return good


def run_checks() -> int:
    """Return the number of failed checks."""
    outcomes = []
    for char in "fdFD":
        for n in ORDERS:
            a, h = definite(70, n, char), symmetric(70, n, char)
            for uplo in "LU":
                outcomes += [
                    check(f"potrf-{uplo}", a, partial(potrf_check, a, uplo)),
                    check(f"syev-{uplo}", h, partial(syev_check, h, uplo)),
                ]
            for m in sorted({n, n + 1, 2 * n}):
                for shape in ((m, n), (n, m)):
                    b = stack(20, *shape, char)
                    outcomes += [
                        check(f"gesvd-{job}", b, partial(gesvd_check, b, job))
                        for job in ("thin", "all")
                    ]
    return outcomes.count(False)


def probe_scales() -> None:
    """Report how cuSOLVER does near overflow and underflow; no gate of ours."""
    for char, scales in SCALES.items():
        for n in (4, 33):
            for scale in scales:
                a = definite(8, n, char) * np.dtype(char).type(scale)
                check(f"potrf-at-{scale:g}", a, partial(potrf_check, a, "L"))
                check(f"syev-at-{scale:g}", a, partial(syev_check, a, "L"))
                check(f"gesvd-at-{scale:g}", a, partial(gesvd_check, a, "all"))
            rows = cupy.logspace(-10, 10, n)[:, None]
            a = (stack(8, n, n, "d") * rows).astype(char)
            check("gesvd-scaled-rows", a, partial(gesvd_check, a, "all"))


def probe_batches() -> None:
    """Report which batches one XsyevBatched call takes, and its workspace."""
    for n in (2, 8, 32, 33):
        for batch in (16384, 32767, 32768, 65535, 65536, 262_144):
            work = symmetric(batch, n, "f")
            w, codes = cupy.empty((batch, n), "f"), cupy.zeros(batch, "i4")
            size = None
            try:
                size = xsyevbatched.workspace_bytes(work, w, vectors=True)
                xsyevbatched.solve(work, w, codes, vectors=True)
                outcome = f"{int(cupy.count_nonzero(codes))} failed"
            except Exception as problem:  # noqa: BLE001 - this is the question
                outcome = f"{type(problem).__name__}: {problem}"
            report(probe="XsyevBatched", n=n, batch=batch, bytes=size, outcome=outcome)


def median_ms(call: Callable[[], object], budget_s: float = 0.4) -> float:
    """Return the median time of a call between two events, in milliseconds."""
    call()
    call()
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    times, end = [], time.perf_counter() + budget_s
    while len(times) < 3 or (len(times) < 50 and time.perf_counter() < end):
        start.record()
        call()
        stop.record()
        stop.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, stop))
    return statistics.median(times)


def timed(
    name: str,
    a: cupy.ndarray,
    ours: Callable[[], object],
    peer: Callable[[], object],
) -> None:
    """Report the medians of both; a peer that fails is a finding too."""
    head = {"time": name, "dtype": a.dtype.char, "shape": "x".join(map(str, a.shape))}
    try:
        ours_ms, peer_ms = median_ms(ours), median_ms(peer)
    except Exception as problem:  # noqa: BLE001 - any of them is the finding
        report(**head, problem=f"{type(problem).__name__}: {problem}")
        return
    times = {"ours_ms": f"{ours_ms:.4f}", "cupy_ms": f"{peer_ms:.4f}"}
    report(**head, **times, ratio=f"{peer_ms / ours_ms:.2f}")


def run_times(chars: str) -> None:
    """Time every op over about a million elements."""
    for char in chars:
        for n in TIMED_ORDERS:
            a = definite(max(1, ELEMENTS // n**2), n, char)
            peer = partial(cupy.linalg.cholesky, a)
            timed("potrf", a, partial(cusolver.potrf, a, "L"), peer)
            ours = partial(cusolver.syev, a, "L", vectors=True)
            timed("syev", a, ours, partial(cupy.linalg.eigh, a))
            elements = ELEMENTS if n <= 32 else SVD_ELEMENTS
            a = stack(max(1, elements // n**2), n, n, char)
            peer = partial(cupy.linalg.svd, a, full_matrices=False)
            timed("gesvd", a, partial(cusolver.gesvd, a, "thin"), peer)


def main() -> int:
    """Run everything and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="also write JSON lines here")
    parser.add_argument("--dtypes", default="fd", help="timed dtypes (default: fd)")
    parser.add_argument("--skip-times", action="store_true")
    options = parser.parse_args()
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    versions = {"cupy": cupy.__version__, "numpy": np.__version__}
    report(device=device, **versions, syev=cusolver.syev_routine())
    failures = run_checks()
    report(failed_checks=failures)
    probe_scales()
    probe_batches()
    if not options.skip_times:
        run_times(options.dtypes)
    if options.json:
        lines = [json.dumps(row, default=str) + "\n" for row in results]
        options.json.write_text("".join(lines), encoding="utf-8")
    return min(failures, 99)


if __name__ == "__main__":
    sys.exit(main())
