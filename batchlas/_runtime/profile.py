"""The kernel trace: one line on stderr per kernel launch, with its time on the device.

Decided here: the text of that line::

    batchlas: kernel potrf_L3_float64 12 groups 0.0830 ms
"""

from __future__ import annotations

import sys
from typing import Any

from batchlas._runtime.settings import settings


def trace_launch(name: str, groups: int, event: Any = None) -> None:
    """Print a launch if kernels are traced; that waits for it.

    Parameters
    ----------
    name : str
        The kernel's.
    groups : int
        Work-groups launched.
    event : dpctl.SyclEvent, optional
        Of the launch; its times are kept where the queue was made for profiling.
    """
    if settings().kernel_trace:
        sys.stderr.write(f"batchlas: kernel {name} {groups} groups {_time(event)}\n")


def _time(event: Any) -> str:
    if event is None:
        return "(not timed: its launcher has no event)"
    event.wait()
    end = event.profiling_info_end  # 0 where it is not kept
    if not end:
        return "(not timed: its queue was made without profiling)"
    return f"{(end - event.profiling_info_start) / 1e6:.4f} ms"
