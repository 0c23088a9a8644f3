"""What tests may swap: the built-in tables, and the memory of warnings given.

Each swap starts a new table generation, so that no decision survives it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._runtime.notices import reset_warnings
from batchlas._select import coverage, store

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "reset_coverage",
    "reset_warnings",
    "set_builtin_tables",
    "use_shipped_tables",
]

reset_coverage = coverage.reset


def set_builtin_tables(tables: Mapping[str, str]) -> None:
    """Let texts, by base name such as ``potrf.sm_90.txt``, be the built-in tables.

    Raises
    ------
    TableError
        If a name is not ``<op>.<device>.txt``. A text is read when it is first asked.
    """
    store.swap_builtin(tables)


def use_shipped_tables() -> None:
    """Bring the tables that batchlas ships back."""
    store.swap_builtin(None)
