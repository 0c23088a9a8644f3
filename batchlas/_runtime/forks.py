"""What a forked child must put right, in one place for all modules that hold state.

A child has the memory of its parent and none of its other threads: a lock that one of
them held stays locked for ever, and a library's worker threads never answer.
"""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import ContextDecorator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def in_forked_child(repair: Callable[[], None]) -> Callable[[], None]:
    """Have a function called in every forked child, before any other code of ours."""
    if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
        os.register_at_fork(after_in_child=repair)
    return repair


class Lock(ContextDecorator):
    """A lock that is free in a forked child, whoever held it in the parent.

    It is reentrant: a garbage collection may run code that takes it while it is held.
    """

    def __init__(self) -> None:
        self.renew()
        _locks.add(self)

    def renew(self) -> None:
        """Forget who holds the lock."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_exc: object) -> None:
        self._lock.release()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


@in_forked_child
def _renew_locks() -> None:
    for lock in _locks:
        lock.renew()
