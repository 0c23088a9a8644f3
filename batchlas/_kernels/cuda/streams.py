"""Streams beside CuPy's current one, on which parts of a call run at the same time.

Kernels whose threads wait for chains of operations leave most of a device idle, which
the kernels of another part then use. All parts begin when the current stream comes to
the call, and what follows on it waits for all of them; a graph that captures the
current stream captures them too. Nothing on the host waits.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import cupy

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Streams(threading.local):
    """A thread's own, by device: what one thread captures no other may use."""

    def __init__(self) -> None:
        self.of: dict[int, list[cupy.cuda.Stream]] = {}


_streams = _Streams()


@contextmanager
def forked(count: int) -> Iterator[list[cupy.cuda.Stream]]:
    """Yield `count` streams of the current device, the current one first.

    Memory that the others use must have been allocated before.
    """
    current = cupy.cuda.get_current_stream()
    others = _streams.of.setdefault(cupy.cuda.runtime.getDevice(), [])
    while len(others) < count - 1:
        others.append(cupy.cuda.Stream(non_blocking=True))
    taken = others[: count - 1]
    for stream in taken:
        _follow(stream, current)
    try:
        yield [current, *taken]
    finally:
        for stream in taken:
            _follow(current, stream)


def _follow(later: cupy.cuda.Stream, earlier: cupy.cuda.Stream) -> None:
    """Let one stream wait for what another has been given so far."""
    event = cupy.cuda.Event(disable_timing=True)
    event.record(earlier)
    later.wait_event(event)
