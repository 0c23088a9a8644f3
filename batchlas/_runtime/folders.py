"""Where files of the user lie that no variable names."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def user_tables() -> Path:
    """Return the folder of a user's own tables, which need not exist."""
    return _user_data_path()("batchlas", appauthor=False) / "tuned"


@cache
def _user_data_path() -> Callable[..., Path]:
    """Return platformdirs' function.

    It is imported by the first decision, not by ``import batchlas``, and held, since a
    destructor may decide when the interpreter imports nothing any more.
    """
    from platformdirs import user_data_path

    return user_data_path
