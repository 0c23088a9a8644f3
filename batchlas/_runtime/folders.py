"""Where files of the user lie that no variable names."""

from __future__ import annotations

from pathlib import Path


def user_tables() -> Path:
    """Return the folder of the tables that a user has measured, which need not exist.

    platformdirs is imported by the first decision, not by ``import batchlas``.
    """
    import platformdirs

    return Path(platformdirs.user_data_path("batchlas", appauthor=False)) / "tuned"
