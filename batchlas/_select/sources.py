"""The fingerprint of an op's kernels, by which a table tells that it has grown stale.

Decided here: which sources count. They are the op's own module and all kernels, vendor
adapters and parts of the kernel compiler that it imports, directly or not. Adapters are
imported by name, so all of them count.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PACKAGE = Path(__file__).resolve().parents[1]
_IMPORT = re.compile(
    r"^[ \t]*(?:from batchlas([\w.]*) import (\([^)]*\)|[^\n]*)"
    r"|import batchlas([\w.]+))",
    re.MULTILINE,
)
_COUNTED = ("_ops", "_kernels", "_vendor")


@cache
def kernels_hash(op: str) -> str | None:
    """Return 8 hex digits of the sources behind an op; None if they cannot be read.

    Parameters
    ----------
    op : str
        The op's name, which is its module's in ``batchlas._ops``.
    """
    digest = hashlib.sha256()
    sources = _closure(_PACKAGE / "_ops" / f"{op}.py")
    if not sources:
        return None  # an op of a test, or a package in an archive
    adapters = (_PACKAGE / "_vendor").glob("*.py")
    # CUDA sources lie beside the modules that compile them.
    cuda = [each for source in sources for each in source.parent.glob("*.cu*")]
    for source in sorted({*sources, *adapters, *cuda}):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:8]


def _closure(start: Path) -> set[Path]:
    """Return a module's file with all that it imports and that counts."""
    found: set[Path] = set()
    waiting = [start] if start.is_file() else []
    while waiting:
        source = waiting.pop()
        found.add(source)
        waiting += [each for each in _imported(source) if each not in found]
    return found


def _imported(source: Path) -> Iterator[Path]:
    for match in _IMPORT.finditer(source.read_text(encoding="utf-8")):
        dotted = match[1] if match[3] is None else match[3]
        parts = dotted.strip(".").split(".")
        if parts[0] not in _COUNTED:
            continue
        yield from _files(parts)
        for name in re.findall(r"\w+", match[2] or ""):
            yield from _files([*parts, name])


def _files(parts: Sequence[str]) -> list[Path]:
    """Return the file of a module or package; none for another name."""
    place = _PACKAGE.joinpath(*parts)
    files = place.with_name(f"{place.name}.py"), place / "__init__.py"
    return [each for each in files if each.is_file()]
