"""Scratch memory of kernels: an arena per queue and thread.

Scratch belongs to the queue and not to the call, because work on a queue may outlive
the call that submitted it. Decided here: how memory is laid out in blocks, in which
order it comes back, who may ask for it, and when it is freed. Where it comes from is
the backend's part (`Memory`), what is asked for the driver's (`lease`). Memory of
results is another matter (`reuse`): it comes back when the caller drops the array, in
any order and any thread.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from batchlas._runtime.forks import in_forked_child
from batchlas._runtime.lease import Lease, Loan
from batchlas._runtime.state import process_wide
from batchlas.exceptions import BatchlasWarning

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._runtime.lease import Allocate, Memory, T

MOST_KEPT_BYTES = 2**28
"""What an arena that nobody borrows from may hold."""

_SMALLEST_BLOCK_BYTES = 2**16
_MOST_AHEAD_BYTES = 2**24
# Queues of a thread whose arenas are kept; beyond it the one longest unused goes.
_MOST_ARENAS = 16


class Arena:
    """A stack of loans on blocks of memory that never move.

    The innermost loan that is given back moves the cursor down. One that is given back
    out of order is marked, and its bytes are free again once the loans above it are
    back: that costs memory for a while, never correctness. Blocks are kept for the next
    loans, so a repeated call allocates nothing; more than `MOST_KEPT_BYTES` are freed
    when the last loan is back.

    An arena belongs to the thread that made it. That is no lock on purpose: loans that
    two threads take in turns would still not come back in order.

    Parameters
    ----------
    memory : Memory
        Where blocks come from.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._blocks: list[tuple[Any, int]] = []
        self._loans: list[Loan] = []
        self._owner = threading.get_ident()
        self._process = os.getpid()

    @property
    def held_bytes(self) -> int:
        """Bytes of all blocks, lent or not."""
        return sum(size for _, size in self._blocks)

    @property
    def live(self) -> tuple[str, ...]:
        """Names and sizes of the leases that are out, innermost last."""
        return tuple(str(loan) for loan in self._loans if not loan.is_returned)

    def lease(self, layout: Callable[[Allocate], T]) -> Lease[T]:
        """Return a lease of a layout's arrays, to be entered by ``with``."""
        return Lease(self, layout)

    def attach_to_current_thread(self) -> None:
        """Hand the arena to the calling thread; its former owner may no longer use it.

        Raises
        ------
        RuntimeError
            While leases are out: they would come back from another thread.
        """
        if self.live:
            message = f"the arena cannot change hands: {self._report()}"
            raise RuntimeError(message)
        self._owner = threading.get_ident()

    def borrow(self, nbytes: int, what: str) -> Loan:
        """Lend `nbytes` above what is lent already.

        Raises
        ------
        RuntimeError
            In a thread that does not own the arena.
        """
        self._check_owner()
        self._reclaim()
        index, start = self._place(nbytes)
        loan = Loan(self._blocks[index][0], index, start, nbytes, what)
        self._loans.append(loan)
        return loan

    def _place(self, nbytes: int) -> tuple[int, int]:
        """Return block and offset for a loan; a new block where none has room."""
        index, start = 0, 0
        if self._loans:
            last = self._loans[-1]
            index, start = last.index, last.start + last.nbytes
        while index < len(self._blocks):
            if start + nbytes <= self._blocks[index][1]:
                return index, start
            index, start = index + 1, 0
        # Doubling keeps the blocks of a growing need few.
        doubled = min(self.held_bytes, _MOST_AHEAD_BYTES)
        size = max(nbytes, doubled, _SMALLEST_BLOCK_BYTES)
        self._blocks.append((self.memory.allocate(size), size))
        return len(self._blocks) - 1, 0

    def give_back(self, loan: Loan) -> None:
        """Take a loan back; whoever holds it may do so, in any thread.

        Bytes that become free may be lent at once. Where work does not run in order,
        that must wait for the work that still reads them. The owner reclaims what
        other threads give back when it borrows next.
        """
        loan.is_returned = True
        if threading.get_ident() == self._owner:
            self._reclaim()

    def _reclaim(self) -> None:
        """Move the cursor down over what has been given back."""
        if not (self._loans and self._loans[-1].is_returned):
            return
        if not self.memory.is_in_order:
            _settle(self.memory)
        while self._loans and self._loans[-1].is_returned:
            self._loans.pop()
        if not self._loans and self.held_bytes > MOST_KEPT_BYTES:
            self._free()

    def trim(self) -> None:
        """Free all blocks, after the work on them.

        Raises
        ------
        RuntimeError
            While leases are out, naming them, or in a thread that is not the owner.
        """
        self._check_owner()
        self._reclaim()
        if self._loans:
            message = f"the arena cannot be trimmed: {self._report()}"
            raise RuntimeError(message)
        self._free()

    def _free(self) -> None:
        _settle(self.memory)
        self._blocks.clear()

    def _check_owner(self) -> None:
        if threading.get_ident() != self._owner:
            message = (
                "this workspace belongs to another thread; take arena_of() in this "
                "one, or hand it over with attach_to_current_thread()"
            )
            raise RuntimeError(message)

    def _report(self) -> str:
        return f"{len(self.live)} leases are out: {', '.join(self.live)}"

    def __del__(self) -> None:
        # A forked child has no threads that would ever finish the parent's work, and
        # a dying interpreter may have no queue any more.
        if sys.is_finalizing() or self._process != os.getpid():
            return
        if self.live:
            message = f"a workspace was dropped while {self._report()}"
            warnings.warn(message, BatchlasWarning, stacklevel=2)
        if self._blocks:
            _settle(self.memory)


def _settle(memory: Memory) -> None:
    """Wait for the queue; what fails on it is told by the caller's next wait."""
    with contextlib.suppress(Exception):
        memory.wait()


class _Arenas(threading.local):
    """A thread's arenas by queue, the latest used last."""

    def __init__(self) -> None:
        self.by_queue: OrderedDict[tuple[str, object], Arena] = OrderedDict()


_arenas = process_wide("arenas", _Arenas)


def arena_of(kind: str, queue: object, make_memory: Callable[[Any], Memory]) -> Arena:
    """Return the calling thread's arena on a queue.

    Parameters
    ----------
    kind : str
        Which backend's arrays it lends.
    queue : hashable
        The queue. It is kept, so that no other one can take its address meanwhile.
    make_memory : callable
        Makes the queue's memory, when this thread meets it for the first time.
    """
    arenas, key = _arenas.by_queue, (kind, queue)
    arena = arenas.get(key)
    if arena is None:
        arena = arenas[key] = Arena(make_memory(queue))
        _drop_idle(arenas)
    else:
        arenas.move_to_end(key)
    return arena


def _drop_idle(arenas: OrderedDict[tuple[str, object], Arena]) -> None:
    for key in [key for key, each in arenas.items() if not each.live]:
        if len(arenas) <= _MOST_ARENAS:
            return
        del arenas[key]


def live_leases() -> tuple[str, ...]:
    """Return the leases of this thread that are out, over all queues."""
    return tuple(each for arena in _arenas.by_queue.values() for each in arena.live)


# Kept alive, since the memory of a dead queue cannot be freed.
_abandoned: list[Arena] = []


@in_forked_child
def _forget() -> None:
    """Leave the parent's arenas alone: their queues do not work in the child."""
    _abandoned.extend(_arenas.by_queue.values())
    _arenas.by_queue = OrderedDict()
