"""Running a LAPACK call over slices of the batch in threads (family ``threads``).

numpy.linalg releases the GIL, so slices run side by side. While they do, BLAS is held
to one thread: its own threads would fight for the same cores (73 against 501 us per
64x64 eigh on two cores).

How many threads: as many as BLAS may use (OMP_NUM_THREADS, OPENBLAS_NUM_THREADS,
threadpoolctl), the process's processors, and BATCHLAS_NUM_THREADS, whichever is least.
"""

from __future__ import annotations

import itertools
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import threadpoolctl

from batchlas._runtime.settings import settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# Slices per thread: a thread that is held up leaves its later slices to the others.
_SLICES_PER_THREAD = 4


class _BlasHold:
    """BLAS held to one thread while at least one call of ours runs in threads.

    BLAS has one limit for the whole process, so the first caller saves and lowers it
    and the last one restores it; saving per call would restore a lowered value.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._saved: list[int] = []
        found = threadpoolctl.ThreadpoolController().select(user_api="blas")
        self._libraries = found.lib_controllers

    def threads_allowed(self) -> int:
        """Return how many threads BLAS may use when nothing holds it."""
        with self._lock:
            if self._holders:
                limits = self._saved
            else:
                limits = [library.get_num_threads() for library in self._libraries]
        return max(limits, default=_processors())

    def give_up(self) -> None:
        """Restore the limits in a forked child, whose holders do not exist."""
        if self._holders:
            for library, limit in zip(self._libraries, self._saved, strict=True):
                library.set_num_threads(limit)

    def __enter__(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._saved = [lib.get_num_threads() for lib in self._libraries]
                for library in self._libraries:
                    library.set_num_threads(1)
            self._holders += 1

    def __exit__(self, *_exc: object) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                for library, limit in zip(self._libraries, self._saved, strict=True):
                    library.set_num_threads(limit)


@lru_cache(maxsize=1)
def _blas() -> _BlasHold:
    return _BlasHold()


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    """Return the pool, made on first use; idle threads cost nothing but memory."""
    return ThreadPoolExecutor(_processors(), thread_name_prefix="batchlas")


def _after_fork() -> None:
    """Forget the parent's pool and hold: their threads do not exist in the child."""
    _pool.cache_clear()
    if _blas.cache_info().currsize:
        _blas().give_up()
    _blas.cache_clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_after_fork)


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def thread_count() -> int:
    """Return how many threads a call may use now; see the module's text."""
    limits = [_blas().threads_allowed(), _processors()]
    ours = settings().num_threads
    return min(limits if ours is None else [*limits, ours])


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

    with _blas():
        others = [_pool().submit(work) for _ in range(threads - 1)]
        try:
            failed = work()
        finally:
            errors = [other.exception() for other in others]
    for error in errors:
        if error is not None:
            raise error
    return failed | any(other.result() for other in others)
