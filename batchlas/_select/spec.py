"""What an op declares once about its choice of kernels.

Decided here: the shape of that declaration, and nothing about any one op.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._runtime.devices import Device
    from batchlas._runtime.lease import Layout
    from batchlas._select.families import Family

# Every kind of array that candidates are listed for; see Device.kind.
KINDS = ("numpy", "dpnp", "cupy")


class Call(Protocol):
    """What selection knows of a call: a NamedTuple whose fields are the op's keys.

    Built from shapes and options alone, never from array values. Sizes are at least 1:
    an op answers an empty stack itself.
    """

    @property
    def dtype(self) -> str:
        """Return the element type's name, such as ``float64``."""

    def _asdict(self) -> dict[str, Any]: ...

    def __hash__(self) -> int: ...


def no_scratch(_choice: Family, _call: Any, _device: Device) -> Layout | None:
    """Return what is borrowed by an op whose choices need no scratch."""
    return None


@dataclass(frozen=True, slots=True, eq=False)
class OpSpec:
    """An op's declaration; two are the same only if they are one object.

    Attributes
    ----------
    op : str
        LAPACK's name for it, as in tables, pins and coverage.
    library : str
        The vendor library group that its vendor family calls, such as ``lapack``.
    keys : tuple of str
        The fields of its calls, ``dtype`` first; a table may declare any of them.
    candidates : callable (dtype, kind) -> tuple of Family
        Every choice that this build has, in tie order: simpler first, native before
        vendor. Pure, and imports nothing: it also runs at interpreter exit.
    can_run : callable (choice, call, device) -> bool
        False exactly when that kernel would raise or answer wrongly; never "slower".
    last_resort : tuple of str
        Family names by generality, tried when no table helps; the other candidates
        follow in their own order.
    scratch : callable (choice, call, device) -> Layout or None
        What the choice borrows of the workspace for this call: the very layout that
        its launch leases. None where that is nothing.
    """

    op: str
    library: str
    keys: tuple[str, ...]
    candidates: Callable[[str, str], tuple[Family, ...]]
    can_run: Callable[[Family, Any, Device], bool]
    last_resort: tuple[str, ...] = ("blocked", "vendor")
    scratch: Callable[[Family, Any, Device], Layout | None] = no_scratch

    def families(self, dtype: str) -> tuple[type[Family], ...]:
        """Return the families of every kind of array: all that a table may spell."""
        found = [type(each) for kind in KINDS for each in self.candidates(dtype, kind)]
        return tuple(dict.fromkeys(found))
