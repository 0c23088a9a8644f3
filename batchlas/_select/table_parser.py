"""The text of a tuned table file becomes tables, one per dtype.

Decided here: what a well-formed file is. Nothing here knows an op's families; spellings
are checked against them in ``store``.

A file is named ``<op>.<device>.txt`` and reads::

    # op=potrf device=cpu_avx512 batchlas=1a2b3c4 kernels=0123abcd source=measured
    # keys: dtype:exact uplo:exact n:log:3 batch:log
    dtype=float64 uplo=L n=8 batch=1024 | tiny 0.0123 | vendor 0.0456   # a remark
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePath
from typing import NoReturn

from batchlas._select.table import Table, TableEntry, TableKey, TableRow
from batchlas.exceptions import TableError

# Plain decimals only, so that no locale, exponent, inf or nan has a meaning here.
_DECIMAL = re.compile(r"[0-9]{1,15}(\.[0-9]{1,15})?")
_SIZE = re.compile(r"[0-9]{1,18}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE_NAME = re.compile(r"([a-z0-9_]+)\.([a-z0-9_]+)\.txt")
_KEYS = "keys:"
_UNTIMED = "-"
_FACTS = {
    "op": re.compile(r"[a-z0-9_]+"),
    "device": re.compile(r"[a-z0-9_]+"),
    "batchlas": re.compile(r"[0-9a-f]{7,40}"),
    "kernels": re.compile(r"[0-9a-f]{8}"),
    "source": re.compile(r"[a-z]+(:[0-9a-f]+)?"),
}
# How a header line begins; any other comment is a remark.
_MARKS = {(name, "=") for name in _FACTS}


def parse_file_name(name: str) -> tuple[str, str] | None:
    """Return the op and the device that a base name names, None if it names none."""
    match = _FILE_NAME.fullmatch(name)
    return (match[1], match[2]) if match else None


@lru_cache(maxsize=256)
def parse_tables(file: str, text: str) -> dict[str, Table]:
    """Return the tables of a file by dtype; the answer is shared, so do not change it.

    Parameters
    ----------
    file : str
        Path or base name, as messages shall name it.
    text : str
        The whole file.

    Raises
    ------
    TableError
        For anything malformed, naming file and line.
    """
    reader = _Reader(file)
    for number, line in enumerate(text.split("\n"), 1):
        reader.line = number
        reader.read(line.strip())
    return reader.tables()


class _Reader:
    """Reads a file line by line, keeping what the lines before have said."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.line = 0
        self.facts: dict[str, str] = {}
        self.keys: tuple[TableKey, ...] = ()
        self.keys_line = 0
        self.rows: dict[str, list[TableRow]] = {}
        self.first_line: dict[tuple[str, ...], int] = {}

    def fail(self, why: str) -> NoReturn:
        message = f"{self.file}:{self.line}: {why}"
        raise TableError(message)

    def read(self, line: str) -> None:
        if line.startswith("#"):
            self.read_comment(line.removeprefix("#").split())
        elif line:
            self.read_row(line.partition("#")[0])

    def read_comment(self, words: list[str]) -> None:
        if words[:1] == [_KEYS]:
            self.read_keys(words[1:])
        elif not self.keys and self.is_header(words):
            for word in words:
                self.read_fact(*word.partition("="))

    def is_header(self, words: list[str]) -> bool:
        return any(word.partition("=")[:2] in _MARKS for word in words[:1])

    def read_fact(self, name: str, _equals: str, value: str) -> None:
        if name not in _FACTS:
            self.fail(f"unknown header field {name!r}; fields: {', '.join(_FACTS)}")
        if name in self.facts:
            self.fail(f"header field {name!r} is given twice")
        if not _FACTS[name].fullmatch(value):
            self.fail(f"header field {name}={value!r} is malformed")
        self.facts[name] = value
        named = parse_file_name(PurePath(self.file).name)
        expected = dict(zip(("op", "device"), named or (), strict=False))
        if value != expected.get(name, value):
            self.fail(f"header says {name}={value}, the file name {expected[name]}")

    def read_keys(self, words: list[str]) -> None:
        if self.keys:
            self.fail(f"second keys line; the first is line {self.keys_line}")
        for name in ("op", "device"):
            if name not in self.facts:
                self.fail(f"no {name}= in the header before the keys line")
        keys = tuple(self.key(*word.split(":")) for word in words)
        if keys[:1] != (TableKey("dtype", exact=True),):
            self.fail("the first key must be dtype:exact")
        if len({key.name for key in keys}) < len(keys):
            self.fail("a key is declared twice")
        if sorted(keys, key=lambda key: not key.exact) != list(keys):
            self.fail("an exact key follows a log key; exact keys come first")
        self.keys, self.keys_line = keys, self.line

    def key(self, name: str, kind: str = "", *weight: str) -> TableKey:
        if not _NAME.fullmatch(name):
            self.fail(f"{name!r} is not a key name")
        if kind not in {"exact", "log"}:
            self.fail(f"key {name!r} needs a kind, {name}:exact or {name}:log")
        if not weight:
            return TableKey(name, exact=kind == "exact")
        if kind == "exact":
            self.fail(f"exact key {name!r} has a weight")
        text = ":".join(weight)
        if not _DECIMAL.fullmatch(text) or float(text) <= 0:
            self.fail(f"weight {text!r} of {name!r} is not a positive plain decimal")
        return TableKey(name, exact=False, weight=float(text))

    def read_row(self, line: str) -> None:
        if not self.keys:
            self.fail("row before the keys line")
        shape, *cells = (part.strip() for part in line.split("|"))
        values = self.values(shape)
        self.refuse_repeat(tuple(values))
        entries = tuple(self.entry(cell.split()) for cell in cells)
        self.check_entries(entries)
        count = sum(key.exact for key in self.keys)
        sizes = tuple(int(value) for value in values[count:])
        row = TableRow(self.line, tuple(values[1:count]), sizes, entries)
        self.rows.setdefault(values[0], []).append(row)

    def values(self, shape: str) -> list[str]:
        """Return the values of a row's keys in declared order."""
        given: dict[str, str] = {}
        for word in shape.split():
            name, equals, value = word.partition("=")
            if not equals or not value:
                self.fail(f"{word!r} is not key=value")
            if name not in {key.name for key in self.keys}:
                self.fail(f"unknown key {name!r}; {self.declared()}")
            if name in given:
                self.fail(f"key {name!r} is given twice")
            given[name] = value
        return [self.value(key, given) for key in self.keys]

    def value(self, key: TableKey, given: dict[str, str]) -> str:
        if key.name not in given:
            self.fail(f"key {key.name!r} is missing; {self.declared()}")
        value = given[key.name]
        if key.exact:
            return value
        if not _SIZE.fullmatch(value) or int(value) == 0:
            self.fail(f"{key.name}={value!r} is not a positive integer")
        return str(int(value))

    def declared(self) -> str:
        return f"keys (line {self.keys_line}): {', '.join(k.name for k in self.keys)}"

    def refuse_repeat(self, values: tuple[str, ...]) -> None:
        first = self.first_line.setdefault(values, self.line)
        if first != self.line:
            self.fail(f"this shape is already on line {first}")

    def entry(self, words: list[str]) -> TableEntry:
        if len(words) != 2:
            self.fail(f"{' '.join(words)!r} is not 'choice milliseconds'")
        spelling, ms = words
        if ms == _UNTIMED:
            return TableEntry(spelling, None)
        if not _DECIMAL.fullmatch(ms) or float(ms) <= 0:
            self.fail(f"time {ms!r} of {spelling!r} is not a positive plain decimal")
        return TableEntry(spelling, float(ms))

    def check_entries(self, entries: tuple[TableEntry, ...]) -> None:
        if not entries:
            self.fail("the row ranks no choice")
        spellings = [entry.spelling for entry in entries]
        twice = {each for each in spellings if spellings.count(each) > 1}
        if twice:
            self.fail(f"ranked twice: {', '.join(sorted(twice))}")
        untimed = [entry.ms is None for entry in entries]
        if any(untimed) and not all(untimed):
            self.fail("some choices of the row are timed, some are not")
        source = self.facts.get("source", "")
        if any(untimed) and not source.startswith("transcribed:"):
            self.fail(f"untimed row, but source={source or 'nothing'} is no transcript")

    def tables(self) -> dict[str, Table]:
        if not self.keys:
            self.fail("no keys line")
        if not self.rows:
            self.fail("no rows")
        exact = tuple(key for key in self.keys[1:] if key.exact)
        log = tuple(key for key in self.keys if not key.exact)
        return {
            dtype: Table(
                op=self.facts["op"],
                device=self.facts["device"],
                dtype=dtype,
                file=self.file,
                keys_line=self.keys_line,
                exact_keys=exact,
                log_keys=log,
                rows=tuple(rows),
                facts=self.facts,
            )
            for dtype, rows in self.rows.items()
        }
