"""A structural digest of a kernel's code, stable across processes."""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import TYPE_CHECKING

from batchlas._kernels.ir import Node
from batchlas._kernels.walk import field_names

if TYPE_CHECKING:
    from batchlas._kernels.ir import Kernel


def digest(kernel: Kernel) -> str:
    """Return 32 hex digits that identify the arguments and the body.

    The info is left out: kernels that differ only in their name or in how they were
    scheduled share one compilation.
    """
    memo: dict[int, bytes] = {}
    return _hash((kernel.params, kernel.body), memo).hex()


def _hash(value: object, memo: dict[int, bytes]) -> bytes:
    if not isinstance(value, Node | tuple):
        return _leaf(value)
    known = memo.get(id(value)) if isinstance(value, Node) else None
    if known is not None:
        return known
    state = hashlib.blake2b(type(value).__name__.encode(), digest_size=16)
    for part in _parts(value):
        state.update(_hash(part, memo))
    out = state.digest()
    if isinstance(value, Node):
        memo[id(value)] = out
    return out


def _parts(value: Node | tuple[object, ...]) -> list[object]:
    if isinstance(value, tuple):
        return [len(value), *value]
    return [getattr(value, name) for name in field_names(type(value))]


def _leaf(value: object) -> bytes:
    text = value.name if isinstance(value, Enum) else repr(value)
    tagged = f"{type(value).__name__}:{text}".encode()
    return hashlib.blake2b(tagged, digest_size=16).digest()
