"""Where tuned tables come from.

Decided here: which files exist, which of two files of one name counts, when a file is
read, and whether the choices it ranks are spelled right. The folder that
``BATCHLAS_TUNED_DIR`` names comes before the user's own, where the tuner writes, and
that before the shipped tables: dtype by dtype, and kind of array by kind of array.
Everything is read on first use and kept until the settings or the table generation
change.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import Enum
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from batchlas._runtime.folders import user_tables
from batchlas._runtime.forks import Lock
from batchlas._runtime.notices import warn_once
from batchlas._runtime.state import process_wide
from batchlas._select.families import parse
from batchlas._select.sources import kernels_hash
from batchlas._select.table import knows
from batchlas._select.table_parser import parse_file_name, parse_tables
from batchlas.exceptions import SpellingError, StaleTableWarning, TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from batchlas._runtime.settings import Settings
    from batchlas._select.families import Family
    from batchlas._select.spec import OpSpec
    from batchlas._select.table import Table


class Place(Enum):
    """Where a table lies, as the trace says it; the first place that has it counts."""

    OVERRIDE = "override"
    USER = "user"
    SHIPPED = "shipped"


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file that may hold tables: its name for messages, and how to read it."""

    name: str
    op: str
    device: str
    place: Place
    read: Callable[[], bytes]

    def tables(self) -> Mapping[str, Table]:
        """Return the file's tables by dtype."""
        content = self.read()
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1
            message = f"{self.name}:{line}: not UTF-8"
            raise TableError(message) from error
        return parse_tables(self.name, text)


@dataclass(frozen=True, slots=True, eq=False)
class TunedTable:
    """A table whose spellings have been read: what the walk asks."""

    table: Table
    place: Place
    choices: Mapping[str, Family]


class TableStore:
    """The files in force under one pair of settings and table generation.

    Parameters
    ----------
    files : iterable of TableFile
        Of two that have a table, the first one counts.
    """

    def __init__(self, files: Iterable[TableFile]) -> None:
        self._files: dict[str, dict[str, list[TableFile]]] = {}
        for file in files:
            devices = self._files.setdefault(file.op, {})
            devices.setdefault(file.device, []).append(file)
        self._found: dict[tuple[OpSpec, str, str, str], TunedTable | None] = {}
        self._lock = Lock()

    def devices(self, op: str) -> list[str]:
        """Return the keys of the devices that have a file for `op`."""
        return list(self._files.get(op, ()))

    def files(self, op: str) -> list[TableFile]:
        """Return the files of `op`, by device; an override before what it replaces."""
        return [file for each in self._files.get(op, {}).values() for file in each]

    def find(
        self, spec: OpSpec, device: str, dtype: str, kind: str
    ) -> TunedTable | None:
        """Return the device's table for `dtype`, None if it has none.

        One that knows the kind of array comes before one that does not: what was
        measured for one kind says little about another.
        """
        key = (spec, device, dtype, kind)
        with self._lock:
            if key not in self._found:
                self._found[key] = self._read(*key)
            return self._found[key]

    def _read(
        self, spec: OpSpec, device: str, dtype: str, kind: str
    ) -> TunedTable | None:
        found = [
            (file, file.tables()[dtype])
            for file in self._files[spec.op][device]
            if dtype in file.tables()
        ]
        if not found:
            return None
        file, table = min(found, key=lambda each: not knows(each[1], kind))
        if file.place is not Place.SHIPPED:
            _warn_if_stale(table)
        return TunedTable(table, file.place, spelled_choices(table, spec))


def is_stale(table: Table) -> bool:
    """Whether a table was measured with other kernels than there are now."""
    now, then = kernels_hash(table.op, table.device), table.facts.get("kernels")
    return None not in (now, then) and now != then


def _warn_if_stale(table: Table) -> None:
    """Say once per file that it should be measured again; it stays in use."""
    if is_stale(table):
        warn_once(
            ("stale", table.file),
            f"{table.file}: measured with other {table.op} kernels than these; it "
            "stays in use until python -m batchlas tune measures again",
            StaleTableWarning,
        )


def spelled_choices(table: Table, spec: OpSpec) -> dict[str, Family]:
    """Return the choice that each spelling of `table` means.

    Raises
    ------
    TableError
        For a key that the op does not have, a spelling that names no choice of the op's
        families, or a choice that a row ranks under two spellings.
    """
    for key in (*table.exact_keys, *table.log_keys):
        if key.name not in spec.keys:
            why = f"{spec.op} has no key {key.name!r}; keys: {', '.join(spec.keys)}"
            _refuse(table, table.keys_line, why)
    families = spec.families(table.dtype)
    choices: dict[str, Family] = {}
    for row in table.rows:
        for entry in row.entries:
            if entry.spelling not in choices:
                try:
                    choices[entry.spelling] = parse(entry.spelling, families)
                except SpellingError as error:
                    _refuse(table, row.line, str(error))
        ranked = [choices[entry.spelling] for entry in row.entries]
        if len(set(ranked)) < len(ranked):
            _refuse(table, row.line, "a choice is ranked twice, spelled differently")
    return choices


def _refuse(table: Table, line: int, why: str) -> None:
    message = f"{table.file}:{line}: {why}"
    raise TableError(message)


class _State:
    """The built-in tables (None: the shipped ones, not looked up) and what was read."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.generation = 0
        self.builtin: tuple[TableFile, ...] | None = None
        # One entry: the latest.
        self.stores: dict[tuple[int, str | None, str | None, int], TableStore] = {}


_state = process_wide("tables", _State)


def generation() -> int:
    """Return a number that grows whenever the built-in tables are swapped."""
    return _state.generation


def table_store(now: Settings) -> TableStore:
    """Return the tables in force under the settings `now`."""
    own = _own_folder() if now.user_tables else None
    # Reloading the settings looks at a user's folders again.
    reload = now.generation if now.tuned_dir or own else 0
    with _state.lock:
        key = (_state.generation, now.tuned_dir, own, reload)
        if key not in _state.stores:
            override = override_files(now.tuned_dir) if now.tuned_dir else ()
            users = _table_files(Path(own), Place.USER)[0] if own else ()
            store = TableStore((*override, *users, *_builtin_files()))
            _state.stores = {key: store}
        return _state.stores[key]


def _own_folder() -> str | None:
    folder = user_tables()
    return str(folder) if folder.is_dir() else None


def swap_builtin(tables: Mapping[str, str] | None) -> None:
    """Replace the built-in tables by texts under base names; None brings them back.

    For tests, and for the tuner, which asks no table.
    """
    files = None if tables is None else tuple(_text_files(tables))
    with _state.lock:
        _state.builtin = files
        _state.generation += 1


def _builtin_files() -> tuple[TableFile, ...]:
    if _state.builtin is None:
        _state.builtin = tuple(shipped_files())
    return _state.builtin


def _text_files(tables: Mapping[str, str]) -> list[TableFile]:
    return [_builtin_file(name, text.encode) for name, text in tables.items()]


def shipped_files() -> list[TableFile]:
    """Return the files of the wheel, or of the checkout that this package runs from."""
    folder = resources.files("batchlas") / "tuned"
    if not folder.is_dir():
        folder = Path(__file__).resolve().parents[2] / "tuned"
    if not folder.is_dir():
        return []
    texts = [each for each in folder.iterdir() if each.name.endswith(".txt")]
    texts.sort(key=lambda each: each.name)
    return [_builtin_file(each.name, each.read_bytes) for each in texts]


def _builtin_file(name: str, read: Callable[[], bytes]) -> TableFile:
    named = parse_file_name(name)
    if named is None:
        message = f"{name}:1: a table file is called <op>.<device>.txt"
        raise TableError(message)
    return TableFile(name, *named, place=Place.SHIPPED, read=read)


def override_files(folder: str) -> list[TableFile]:
    """Return the tables of a user's folder; one warning says what was left out."""
    # Path.is_dir raises for names that are too long.
    if not os.path.isdir(folder):  # noqa: PTH112
        warn_once(
            ("tuned_dir", folder), f"BATCHLAS_TUNED_DIR={folder!r} is not a folder"
        )
        return []
    files, strangers = _table_files(Path(folder), Place.OVERRIDE)
    if strangers:
        warn_once(
            ("tuned_dir", folder),
            f"BATCHLAS_TUNED_DIR={folder!r}: not named <op>.<device>.txt and skipped: "
            f"{', '.join(strangers)}",
        )
    return files


def _table_files(folder: Path, place: Place) -> tuple[list[TableFile], list[str]]:
    """Return a folder's tables, and the names of what is neither table nor ledger."""
    files, strangers = [], []
    for path in sorted(folder.iterdir()):
        named = parse_file_name(path.name) if path.is_file() else None
        if named is not None:
            files.append(TableFile(str(path), *named, place, path.read_bytes))
        elif path.suffix != ".jsonl":
            strangers.append(path.name)
    return files, strangers
