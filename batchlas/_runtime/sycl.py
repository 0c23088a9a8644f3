"""The SYCL runtime: the queue of the host's processor, and whose turn it is.

Decided here: whether there is a queue, on which kernels for NumPy arrays run. dpctl is
imported when the first NumPy array arrives and not before; without it, or without a CPU
device, there are no native kernels for NumPy arrays and ``why_no_queue`` says so.

One thread at a time is in the runtime (`in_turn`). Intel's runtime of CPU devices is
not safe for two: two threads that wait for one out-of-order queue crash it within
seconds by dpctl alone, two that copy dpnp arrays to the host hang, and dpnp, which
keeps the order of its work per queue for all threads together, loses some of it. A
kernel has all processors anyway.

A SYCL runtime does not survive a fork: its worker threads do not exist in the child,
where dpnp's functions were seen to wait for them for ever. A child of a process that
had loaded it therefore runs NumPy arrays through LAPACK, says so once, and refuses
arrays of that runtime.
"""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from batchlas._runtime.forks import Lock, in_forked_child
from batchlas._runtime.notices import warn_once
from batchlas._runtime.settings import settings
from batchlas._runtime.state import process_wide

if TYPE_CHECKING:
    from collections.abc import Iterator

_AFTER_FORK = "the SYCL runtime that was loaded before a fork does not work after it"
_INSTEAD = "start processes by 'spawn' or 'forkserver' (multiprocessing.get_context)"


class _State:
    """The queue, or why there is none; neither before the first question."""

    def __init__(self) -> None:
        self.queue: Any = None
        self.reason: str | None = None
        self.is_orphaned = False
        self.abandoned: list[Any] = []


_state = process_wide("sycl", _State)

in_turn = process_wide("turn", Lock)
"""Held by whoever uses the runtime. Of all locks it is taken first."""


@contextmanager
def turn_on(queue: Any) -> Iterator[None]:
    """Hold the runtime for a call that works on a queue.

    On a CPU device the call's work is waited for, since the processors that do it are
    the runtime's threads. Other devices go on by themselves.
    """
    with in_turn:
        try:
            yield
        finally:
            if queue.sycl_device.is_cpu:
                queue.wait()


def host_queue() -> Any:
    """Return the queue of the host's CPU device, or None without one."""
    if _state.queue is None and _state.reason is None:
        with in_turn:
            if _state.queue is None and _state.reason is None:
                _find()
    return _state.queue


def why_no_queue() -> str | None:
    """Return why `host_queue` has none, None if it has one."""
    host_queue()
    return _state.reason


def check_not_orphaned() -> None:
    """Refuse to touch SYCL arrays where every touch may wait for ever.

    Raises
    ------
    RuntimeError
        In a forked child whose parent had loaded the SYCL runtime.
    """
    if _state.is_orphaned:
        message = f"{_AFTER_FORK}: {_INSTEAD}"
        raise RuntimeError(message)


def _find() -> None:
    if _state.is_orphaned:
        _state.reason = _AFTER_FORK
        consequence = "NumPy arrays run through LAPACK here"
        warn_once("fork", f"{_AFTER_FORK}: {consequence}; {_INSTEAD}")
    elif importlib.util.find_spec("dpctl") is None:
        _state.reason = "dpctl is not installed: pip install 'batchlas[sycl]'"
    else:
        _ask_dpctl()


def _ask_dpctl() -> None:
    wanted = "enable_profiling" if settings().profiling else "default"
    try:
        import dpctl

        found = [d for d in dpctl.get_devices() if d.is_cpu and _shares_memory(d)]
        if found:
            _state.queue = dpctl.SyclQueue(found[0], property=wanted)
        else:
            _state.reason = "no SYCL CPU device; python -m batchlas doctor says more"
    except Exception as error:  # noqa: BLE001 - whatever is broken, LAPACK still runs
        _state.reason = f"dpctl is broken, {type(error).__name__}: {error}"


def _shares_memory(device: Any) -> bool:
    """Whether kernels may be given addresses of ordinary memory."""
    return bool(device.has_aspect_usm_system_allocations)


@in_forked_child
def _give_up() -> None:
    """Let go of the queue; the object stays, since its destructor would wait."""
    if sys.modules.get("dpctl") is not None:
        _state.abandoned.append(_state.queue)
        _state.queue = None
        _state.is_orphaned = True
