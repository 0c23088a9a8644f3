"""Warnings that are given once per cause.

Decided here: when a warning has been given already. What is worth a warning is decided
where it happens.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from batchlas._runtime.forks import Lock
from batchlas._runtime.state import process_wide
from batchlas.exceptions import BatchlasWarning

if TYPE_CHECKING:
    from collections.abc import Hashable


class _Notices:
    def __init__(self) -> None:
        self.lock = Lock()
        self.given: set[Hashable] = set()


_notices = process_wide("notices", _Notices)


def warn_once(
    cause: Hashable, message: str, category: type[BatchlasWarning] = BatchlasWarning
) -> None:
    """Give a warning unless this cause has had one in this process."""
    with _notices.lock:
        if cause in _notices.given:
            return
        _notices.given.add(cause)
    warnings.warn(message, category, stacklevel=2)


def reset_warnings() -> None:
    """Forget every cause, so that each warns again."""
    with _notices.lock:
        _notices.given.clear()
