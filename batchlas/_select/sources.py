"""The fingerprint of an op's kernels, by which a table tells that it has grown stale.

Decided here: which sources count, and what of them: neither comments, nor docstrings,
nor where a line is broken. On devices of SYCL they are the op's own module and
all kernels and parts of the kernel compiler that it imports, directly or not; on those
of CUDA the module of the CUDA families and their sources. The vendor's adapters are
imported by name, so all of the device's kind count. Neither kind of device minds what
changes for the other.
"""

from __future__ import annotations

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
# Comments, and strings that begin a line.
_BESIDE_CODE = {
    "py": re.compile(r'^[ \t]*r?"""[\s\S]*?"""|(?:^|[ \t])# .*$', re.MULTILINE),
    "c": re.compile(r"//.*$|/\*[\s\S]*?\*/", re.MULTILINE),
}
_COUNTED = ("_ops", "_kernels", "_vendor")
_CUDA_FAMILIES = _PACKAGE / "_ops" / "cuda.py"
_CUDA_KERNELS = _PACKAGE / "_kernels" / "cuda"
_CUDA_ADAPTERS = ("cuda_", "cusolver", "stage", "xsyev")


@cache
def kernels_hash(op: str, device: str) -> str | None:
    """Return 8 hex digits of the sources behind an op; None if they cannot be read.

    Parameters
    ----------
    op : str
        The op's name, which is its module's in ``batchlas._ops``.
    device : str
        The device's key, such as ``cpu_avx512`` or ``sm_90``.
    """
    import hashlib  # no shipped table asks when it decides, so imports need not wait

    module = _PACKAGE / "_ops" / f"{op}.py"
    if not module.is_file():
        return None  # an op of a test, or a package in an archive
    of_cuda = device.startswith("sm_")
    sources = _closure(_CUDA_FAMILIES if of_cuda else module)
    by_name = {*_CUDA_KERNELS.glob("*.cu*"), *(_PACKAGE / "_vendor").glob("*.*")}
    sources |= {each for each in by_name if _is_cuda(each) == of_cuda}
    digest = hashlib.sha256()
    for source in sorted(sources):
        digest.update(_meaning(source).encode())
    return digest.hexdigest()[:8]


def _meaning(source: Path) -> str:
    """Return a source's text without what means nothing to a kernel."""
    text = source.read_text(encoding="utf-8")
    beside = _BESIDE_CODE["py" if source.suffix == ".py" else "c"]
    return "".join(beside.sub("", text).split())


def _is_cuda(source: Path) -> bool:
    adapter = source.parent.name == "_vendor" and source.name.startswith(_CUDA_ADAPTERS)
    return adapter or source == _CUDA_FAMILIES or source.parent == _CUDA_KERNELS


def _closure(start: Path) -> set[Path]:
    """Return a module's file with all that it imports and that counts.

    Imports are not followed to the other kind of device.
    """
    of_cuda = _is_cuda(start)
    found: set[Path] = set()
    waiting = [start] if start.is_file() else []
    while waiting:
        source = waiting.pop()
        found.add(source)
        waiting += [
            each
            for each in _imported(source)
            if each not in found and _is_cuda(each) == of_cuda
        ]
    return found


def _imported(source: Path) -> Iterator[Path]:
    for match in _IMPORT.finditer(source.read_text(encoding="utf-8")):
        dotted = match[1] if match[3] is None else match[3]
        parts = dotted.strip(".").split(".")
        if parts[0] not in _COUNTED:
            continue
        if parts != ["_ops"]:  # it lists the other ops too
            yield from _files(parts)
        for name in re.findall(r"\w+", match[2] or ""):
            yield from _files([*parts, name])


def _files(parts: Sequence[str]) -> list[Path]:
    """Return the file of a module or package; none for another name."""
    place = _PACKAGE.joinpath(*parts)
    files = place.with_name(f"{place.name}.py"), place / "__init__.py"
    return [each for each in files if each.is_file()]
