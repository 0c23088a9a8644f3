"""State of which a process has one, whatever becomes of the modules that use it.

A module that is reloaded, or removed and imported again, runs a second time: an open
`errstate` would be forgotten, a limit on BLAS threads restored to what a first copy had
lowered, and what `install` replaced could not be put back. So what must not exist twice
is kept here, outside the package's own modules.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_HOLDER = "_batchlas_state"


def process_wide(name: str, make: Callable[[], T]) -> T:
    """Return the process's one object of this name, made by the first who asks."""
    holder = sys.modules.setdefault(_HOLDER, ModuleType(_HOLDER, __doc__))
    objects = vars(holder)
    if name not in objects:
        objects.setdefault(name, make())
    return cast("T", objects[name])
