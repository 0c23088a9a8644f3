"""The SYCL queue of the host's processor, on which kernels for NumPy arrays run.

Decided here: whether there is one. dpctl is imported when the first NumPy array arrives
and not before; without it, or without a CPU device, there are no native kernels for
NumPy arrays and ``why_no_queue`` says so.
"""

from __future__ import annotations

import importlib.util
import os
import threading
from typing import Any

_lock = threading.Lock()
_queue: Any = None
_reason: str | None = None


def host_queue() -> Any:
    """Return the queue of the host's CPU device, or None without one."""
    if _queue is None and _reason is None:
        with _lock:
            if _queue is None and _reason is None:
                _find()
    return _queue


def why_no_queue() -> str | None:
    """Return why `host_queue` has none, None if it has one."""
    host_queue()
    return _reason


def _find() -> None:
    global _queue, _reason  # noqa: PLW0603 - one queue per process, kept here
    if importlib.util.find_spec("dpctl") is None:
        _reason = "dpctl is not installed: pip install 'batchlas[sycl]'"
        return
    try:
        import dpctl

        found = [d for d in dpctl.get_devices() if d.is_cpu and _shares_memory(d)]
        if found:
            _queue = dpctl.SyclQueue(found[0])
        else:
            _reason = "no SYCL CPU device; python -m batchlas doctor says more"
    except Exception as error:  # noqa: BLE001 - whatever is broken, LAPACK still runs
        _reason = f"dpctl is broken, {type(error).__name__}: {error}"


def _shares_memory(device: Any) -> bool:
    """Whether kernels may be given addresses of ordinary memory."""
    return bool(device.has_aspect_usm_system_allocations)


def _after_fork() -> None:
    """Give the queue up: the runtime's threads do not exist in a forked child."""
    global _queue, _reason  # noqa: PLW0603 - see _find
    if _queue is not None:
        # The object stays alive: its destructor would wait for threads that are gone.
        _abandoned.append(_queue)
        _queue = None
        _reason = "the SYCL runtime does not survive a fork; use spawn instead"


_abandoned: list[Any] = []

if hasattr(os, "register_at_fork"):  # not on Windows, which cannot fork
    os.register_at_fork(after_in_child=_after_fork)
