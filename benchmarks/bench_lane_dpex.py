"""Cholesky kernels by numba-dpex against OpenCL C and dpnp, on the same dpnp arrays.

The kernels take turns in one process, on memory that is already there; a row shows the
medians of milliseconds, the median of the ratios (above 1: numba-dpex is the faster),
and how many times as fast as dpnp.linalg.cholesky the public call is with either
renderer. dpnp factors matrix by matrix, so it is given a part of the batch and its time
is scaled to the whole.

Run in the environment of requirements/numba-dpex.txt:
python benchmarks/bench_lane_dpex.py [--orders 2,3,4] [--dtypes float64] [--rounds 15]
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from statistics import median

import numpy as np

import batchlas  # before dpnp: it makes the CPU device visible

ORDERS = "2,3,4,8,16"
DTYPES = "float64,float32"
ELEMENTS = 3_000_000
PEER_MATRICES = 2_000
WIDTH = 8


def stack(n: int, dtype: str):
    import dpnp

    rng = np.random.default_rng(0)
    b = rng.standard_normal((ELEMENTS // n**2, n, n))
    return dpnp.asarray((b @ b.swapaxes(-1, -2) + n * np.eye(n)).astype(dtype))


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def alternate(calls, rounds: int):
    """Return each call's times; the order of the calls turns with the rounds."""
    for call in calls:
        call()
        call()
    times = [[0.0] * rounds for _ in calls]
    for number in range(rounds):
        turn = range(len(calls))
        for which in turn if number % 2 else reversed(turn):
            times[which][number] = seconds(calls[which])
    return times


def ratio(mine, theirs) -> float:
    return median(b / a for a, b in zip(mine, theirs, strict=True))


def kernels(a):
    """Return the launches of both renderers on one set of arrays."""
    import dpnp

    from batchlas._backends import dpnp as backend
    from batchlas._backends import in_host_memory
    from batchlas._kernels import lane, lane_dpex

    info = dpnp.zeros(len(a), dtype=np.int32)
    arrays = (a, dpnp.zeros_like(a), info)
    views = [in_host_memory(backend, array) for array in arrays]
    device = backend.device(a)
    return (
        lambda: lane_dpex.potrf(arrays, "L", WIDTH, device, ()),
        lambda: lane.potrf(a.sycl_queue, views, "L", WIDTH, 0, ()),
    )


def public(a, renderer: str, rounds: int):
    """Return the times of the public call and of dpnp's, for the whole batch."""
    import dpnp

    part = a[:PEER_MATRICES]
    pins = {
        "BATCHLAS_SYCL_RENDERER": renderer,
        "BATCHLAS_POTRF_ROUTE": f"lane:width={WIDTH}:ahead=0",
    }
    with batchlas.scoped_env(**pins):
        ours, peer = alternate(
            (
                partial(batchlas.linalg.cholesky, a),
                lambda: dpnp.linalg.cholesky(part).sycl_queue.wait(),  # noqa: PLW0108 - timed
            ),
            rounds,
        )
    return ours, [t * len(a) / len(part) for t in peer]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", default=ORDERS)
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    print("dtype     n width  dpex  opencl ms  ratio   x dpnp: dpex opencl")
    for dtype in given.dtypes.split(","):
        for n in map(int, given.orders.split(",")):
            a = stack(n, dtype)
            dpex, opencl = alternate(kernels(a), given.rounds)
            peers = [public(a, by, 5) for by in ("dpex", "opencl")]
            row = f"{1e3 * median(dpex):7.2f}{1e3 * median(opencl):8.2f}"
            times = "".join(f"{ratio(*pair):7.0f}" for pair in peers)
            print(
                f"{dtype}{n:4}{WIDTH:4}{row}{ratio(dpex, opencl):10.2f}    {times}",
                flush=True,
            )


if __name__ == "__main__":
    main()
