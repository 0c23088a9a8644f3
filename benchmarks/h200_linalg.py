"""Time cholesky, eigh and svd of stacks against the other libraries on one GPU.

``python benchmarks/h200_linalg.py`` prints, per op, order and dtype, the time of one
call on about 16 million elements (svd: at most 65,536 matrices) of batchlas and of the
best of cupy.linalg, torch.linalg and jax.numpy.linalg in the same run, and their ratio.
Times are medians between two events with several calls between them, so that launches
overlap as they do in a program; JAX, which has no events, is timed by the clock. Calls
raise nothing, as CuPy's and JAX's do not (``errstate(linalg="ignore")``).

Two peers are passed over where an earlier run had them out of the race (``--all-peers``
times them too): torch's eigh of orders from 64, 100 times slower than JAX's, and JAX's
svd of orders up to 32, the same routine as CuPy's within 3 %. A peer's svd of larger
matrices takes milliseconds per matrix, one after the other: there it is called once, on
fewer matrices, and its time is scaled up.

``--candidates`` times every native candidate instead of what the tables choose;
``--out FILE`` also writes JSON lines.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import cupy

import batchlas
from batchlas._ops import SPECS
from batchlas._select import ScopedPin

if TYPE_CHECKING:
    from collections.abc import Callable

ELEMENTS = 1 << 24
MOST_SVD = 65536
ORDERS = (3, 4, 8, 16, 32, 64, 128, 256, 512)
OPS = {"cholesky": "potrf", "eigh": "syev", "eigvalsh": "syev", "svd": "gesvd",
       "svdvals": "gesvd"}  # fmt: skip
# Matrices of an order from which a peer's svd is called on few of them.
FEW_SVD = {64: 64, 128: 16, 256: 8, 512: 4}


def definite(batch: int, n: int, char: str) -> cupy.ndarray:
    """Return positive definite matrices: dominated by their diagonal."""
    a = hermitian(batch, n, char)
    a[:, range(n), range(n)] = 2 * n
    return a


def hermitian(batch: int, n: int, char: str) -> cupy.ndarray:
    a = general(batch, n, char)
    return (a + a.conj().swapaxes(-1, -2)) / 2


def general(batch: int, n: int, char: str) -> cupy.ndarray:
    rng = cupy.random.default_rng(7)
    a = rng.standard_normal((batch, n, n), dtype=char.lower())
    if char in "FD":
        a = a + 1j * rng.standard_normal((batch, n, n), dtype=char.lower())
    return a


def median_ms(call: Callable[[], Any], budget_s: float) -> float:
    """Return milliseconds per call; one call if it takes longer than a second."""
    call()
    cupy.cuda.runtime.deviceSynchronize()
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()

    def timed(count: int) -> float:
        start.record()
        for _ in range(count):
            call()
        stop.record()
        stop.synchronize()
        return cupy.cuda.get_elapsed_time(start, stop) / count

    first = timed(1)
    if first > 1000:
        return first
    count = max(1, min(20, int(2 / first)))
    times, end = [], time.perf_counter() + budget_s
    while len(times) < 3 or (len(times) < 15 and time.perf_counter() < end):
        times.append(timed(count))
    return statistics.median(times)


def clock_ms(call: Callable[[], Any], budget_s: float) -> float:
    """Return milliseconds per call by the clock; `call` waits for its result."""
    call()
    times, end = [], time.perf_counter() + budget_s
    while not times or (len(times) < 15 and time.perf_counter() < end):
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e3)
    return statistics.median(times)


def of_torch(op: str) -> Callable[[Any], Any]:
    import torch

    functions = {"svd": partial(torch.linalg.svd, full_matrices=False)}
    return functions.get(op) or vars(torch.linalg)[op]


def of_jax(op: str) -> Callable[[Any], Any]:
    import jax

    jax.config.update("jax_enable_x64", True)
    functions = {
        "svd": partial(jax.numpy.linalg.svd, full_matrices=False),
        "svdvals": partial(jax.numpy.linalg.svd, compute_uv=False),
    }
    return jax.jit(functions.get(op) or vars(jax.numpy.linalg)[op])


def of_cupy(op: str) -> Callable[[Any], Any]:
    functions = {
        "svd": partial(cupy.linalg.svd, full_matrices=False),
        "svdvals": partial(cupy.linalg.svd, compute_uv=False),
    }
    return functions.get(op) or vars(cupy.linalg)[op]


def is_passed_over(op: str, n: int, peer: str) -> bool:
    slow = peer == "torch" and op.startswith("eig") and n >= 64
    return slow or (peer == "jax" and op.startswith("svd") and n <= 32)


def peer_times(
    op: str, a: cupy.ndarray, budget_s: float, *, everyone: bool
) -> dict[str, Any]:
    """Return the time of each peer, or why it failed."""
    import jax
    import torch

    found: dict[str, Any] = {}
    calls = {
        "cupy": (lambda: partial(of_cupy(op), a), median_ms),
        "torch": (lambda: partial(of_torch(op), torch.from_dlpack(a)), median_ms),
        "jax": (lambda: waiting(of_jax(op), jax.dlpack.from_dlpack(a)), clock_ms),
    }
    for name, (make, timer) in calls.items():
        if not everyone and is_passed_over(op, a.shape[-1], name):
            continue
        try:
            found[name] = timer(make(), budget_s)
        except Exception as error:  # noqa: BLE001 - a peer that fails is a finding
            found[name] = f"{type(error).__name__}: {str(error)[:60]}"
        release()
    return found


def waiting(function: Callable[[Any], Any], a: Any) -> Callable[[], Any]:
    import jax

    return lambda: jax.block_until_ready(function(a))


def release() -> None:
    import torch

    torch.cuda.empty_cache()
    cupy.get_default_memory_pool().free_all_blocks()


def batch_of(op: str, n: int) -> int:
    batch = ELEMENTS // (n * n)
    return min(batch, MOST_SVD) if op.startswith("svd") else batch


def make(op: str, batch: int, n: int, char: str) -> cupy.ndarray:
    kinds = {"potrf": definite, "syev": hermitian, "gesvd": general}
    return kinds[OPS[op]](batch, n, char)


def best_peer(
    op: str, n: int, char: str, budget_s: float, *, everyone: bool
) -> dict[str, Any]:
    batch = batch_of(op, n)
    few = min(batch, FEW_SVD.get(n, batch)) if op.startswith("svd") else batch
    a = make(op, few, n, char)
    times = peer_times(op, a, budget_s, everyone=everyone)
    times = {
        k: t * batch / few if isinstance(t, float) else t for k, t in times.items()
    }
    known = [t for t in times.values() if isinstance(t, float)]
    return {**times, "best": min(known, default=None), "matrices": few}


def our_times(op: str, a: cupy.ndarray, choices: list[str], budget_s: float) -> dict:
    """Return the time of each pinned choice; an empty choice is the tables' own."""
    function = vars(batchlas.linalg)[op]
    if op == "svd":
        function = partial(function, full_matrices=False)
    found = {}
    for choice in choices:
        try:
            with batchlas.errstate(linalg="ignore"):
                if choice:
                    with ScopedPin(OPS[op], choice):
                        found[choice] = median_ms(partial(function, a), budget_s)
                else:
                    name = batchlas.explain(op, a).choice
                    found[name] = median_ms(partial(function, a), budget_s)
        except Exception as error:  # noqa: BLE001 - the finding
            found[choice] = f"{type(error).__name__}: {str(error)[:200]}"
        cupy.get_default_memory_pool().free_all_blocks()
    return found


def choices_of(op: str, a: cupy.ndarray) -> list[str]:
    """Return the spellings of every candidate that can run."""
    (spec,) = (spec for spec in SPECS if spec.op == OPS[op])
    backend = batchlas._dispatch.backend_of(a)
    device, n, batch = backend.device(a), a.shape[-1], a.shape[0]
    dtype = a.dtype.name
    keys = {"dtype": dtype, "array": "cupy", "n": n, "m": n, "batch": batch}
    keys |= {"uplo": "L", "jobz": "N" if op == "eigvalsh" else "V"}
    keys |= {"vec": "none" if op == "svdvals" else "all"}
    from batchlas.tune.problems import PROBLEMS

    call = PROBLEMS[spec.op].call(**{k: keys[k] for k in spec.keys})
    found = spec.candidates(dtype, "cupy")
    return [str(c) for c in found if spec.can_run(c, call, device)]


def copy_rate(elements: int, char: str) -> float:
    """Return bytes per millisecond of a copy, counting what is read and written."""
    a, b = (cupy.ones(elements, char) for _ in range(2))
    return 2 * a.nbytes / median_ms(lambda: cupy.copyto(b, a), 0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--orders", default=",".join(map(str, ORDERS)))
    parser.add_argument("--dtypes", default="fd")
    parser.add_argument("--candidates", action="store_true")
    parser.add_argument("--without-peers", action="store_true")
    parser.add_argument("--all-peers", action="store_true")
    parser.add_argument("--budget", type=float, default=0.1, help="seconds per time")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after these")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    end = time.perf_counter() + given.seconds
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(device, "cupy", cupy.__version__)
    rates = {char: copy_rate(ELEMENTS, char) for char in given.dtypes}
    for op in given.ops.split(","):
        for n in map(int, given.orders.split(",")):
            for char in given.dtypes:
                if time.perf_counter() > end:
                    print("out of time")
                    return 1
                a = make(op, batch_of(op, n), n, char)
                choices = choices_of(op, a) if given.candidates else [""]
                row = {"op": op, "n": n, "dtype": char, "batch": len(a)}
                row["ours"] = our_times(op, a, choices, given.budget)
                rate = 2 * a.nbytes / rates[char]
                del a
                release()
                if not given.without_peers:
                    row["peers"] = best_peer(
                        op, n, char, given.budget, everyone=given.all_peers
                    )
                report(row, rate)
                if given.out:
                    with given.out.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    return 0


def report(row: dict, copy_ms: float) -> None:
    head = f"{row['op']:9}{row['n']:4} {row['dtype']}"
    best = row.get("peers", {}).get("best")
    peers = "".join(
        f" {k}={v:.4g}" if isinstance(v, float) else f" {k}={str(v)[:24]}"
        for k, v in row.get("peers", {}).items()
        if k in {"cupy", "torch", "jax"}
    )
    parts = []
    for name, ms in row["ours"].items():
        if not isinstance(ms, float):
            parts.append(f"{name}: {ms}")
            continue
        ratio = f"{best / ms:.1f}x " if best else ""
        parts.append(f"{name}={ms:.4g} {ratio}{100 * copy_ms / ms:.0f}%copy")
    print(head, " | ".join(parts), "|", peers, flush=True)


if __name__ == "__main__":
    sys.exit(main())
