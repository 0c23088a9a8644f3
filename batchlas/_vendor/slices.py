"""Running a LAPACK call over slices of the batch in threads (family ``threads``).

numpy.linalg releases the GIL, so slices run side by side. While they do, BLAS is held
to one thread: its own threads would fight for the same cores (73 against 501 us per
64x64 eigh on two cores).

How many threads: as many as BLAS may use (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS,
threadpoolctl), the process's processors, and BATCHLAS_NUM_THREADS, whichever is least.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from batchlas._runtime.blas import blas, processors
from batchlas._runtime.forks import in_forked_child
from batchlas._runtime.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from numpy.typing import NDArray

# Slices per thread: a thread that is held up leaves its later slices to the others.
_SLICES_PER_THREAD = 4


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the pool, made on first use; idle threads cost nothing but memory."""
    return ThreadPoolExecutor(processors(), thread_name_prefix="batchlas")


@in_forked_child
def _forget() -> None:
    """Forget the parent's pool: its threads do not exist in the child."""
    _pool.cache_clear()


def thread_count() -> int:
    """Return how many threads a call may use now; see the module's text."""
    limits = [blas().threads_allowed(), processors()]
    ours = settings().num_threads
    return min(limits if ours is None else [*limits, ours])


def _started(work: Callable[[], bool], count: int) -> list[Future[bool]]:
    """Have up to `count` other threads work; none when the interpreter is ending.

    An exit handler or a destructor may call then, and no thread can be started.
    """
    started: list[Future[bool]] = []
    with contextlib.suppress(RuntimeError):
        for _ in range(count):
            started.append(_pool().submit(work))
    return started


def over_batch(
    run: Callable[..., bool],
    gufunc: Callable[..., Any],
    signature: str,
    a: NDArray[Any],
    outputs: tuple[NDArray[Any], ...],
) -> bool:
    """Call ``run(gufunc, signature, a[s], outputs[s])`` over slices s of the batch.

    Returns
    -------
    bool
        Whether any slice reported a failed matrix. An exception in one slice is raised
        after all slices have ended, since they write to the caller's arrays.
    """
    threads = thread_count()
    flat = a.reshape(-1, *a.shape[-2:])
    batch = len(flat)
    if threads == 1 or batch == 1:
        return run(gufunc, signature, a, outputs)
    flat_outputs = [o.reshape(batch, *o.shape[a.ndim - 2 :]) for o in outputs]
    count = min(batch, threads * _SLICES_PER_THREAD)
    edges = [batch * i // count for i in range(count + 1)]
    slices = iter([slice(*pair) for pair in itertools.pairwise(edges)])
    lock = threading.Lock()

    def work() -> bool:
        failed = False
        while True:
            with lock:
                part = next(slices, None)
            if part is None:
                return failed
            views = tuple(output[part] for output in flat_outputs)
            failed |= run(gufunc, signature, flat[part], views)

    with blas():
        others = _started(work, threads - 1)
        try:
            failed = work()
        finally:
            errors = [other.exception() for other in others]
    for error in errors:
        if error is not None:
            raise error
    return failed | any(other.result() for other in others)
