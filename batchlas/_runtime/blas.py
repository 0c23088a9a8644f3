"""The host's BLAS as a whole: how many threads it may use, and holding it to one.

BLAS has one limit for the whole process, so all that change it share one hold.
"""

from __future__ import annotations

import os
from functools import lru_cache

import threadpoolctl

from batchlas._runtime.forks import Lock, in_forked_child
from batchlas._runtime.state import process_wide


class BlasHold:
    """BLAS held to one thread while at least one ``with`` block of this is open.

    The first block saves and lowers the limit and the last one restores it; saving per
    block would restore a lowered value.
    """

    def __init__(self) -> None:
        self._lock = Lock()
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
        return max(limits, default=processors())

    def give_up(self) -> None:
        """Restore the limits in a forked child, whose holders do not exist."""
        if self._holders:
            self._holders = 0
            self._restore()

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
                self._restore()

    def _restore(self) -> None:
        for library, limit in zip(self._libraries, self._saved, strict=True):
            library.set_num_threads(limit)


@lru_cache(maxsize=1)
def blas() -> BlasHold:
    """Return the hold of this process; making it looks all loaded libraries over."""
    return process_wide("blas", BlasHold)


@in_forked_child
def _give_up() -> None:
    if blas.cache_info().currsize:
        blas().give_up()


def processors() -> int:
    """Return how many processors this process may run on."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS and Windows
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
