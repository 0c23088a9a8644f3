"""Warnings that are given once per cause.

Decided here: when a warning has been given already. What is worth a warning is decided
where it happens.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING

from batchlas.exceptions import BatchlasWarning

if TYPE_CHECKING:
    from collections.abc import Hashable

_lock = threading.Lock()
_given: set[Hashable] = set()


def warn_once(
    cause: Hashable, message: str, category: type[BatchlasWarning] = BatchlasWarning
) -> None:
    """Give a warning unless this cause has had one in this process."""
    with _lock:
        if cause in _given:
            return
        _given.add(cause)
    warnings.warn(message, category, stacklevel=2)


def reset_warnings() -> None:
    """Forget every cause, so that each warns again."""
    with _lock:
        _given.clear()
