"""Optimisations as data, their text form, and the answer to applying one.

The text form is for tables and pins: ``split:0:64:local,split:1:4:lanes`` with
``:top`` after a split from the top, ``pad:1:32``, ``swap:0:1`` and ``tc:0:-1:0:1``.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from enum import Enum
from functools import total_ordering
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from batchlas._kernels.expr import Axis


class Target(Enum):
    """What runs the inner half of a split axis."""

    UPCAST = "lanes"
    LOCAL = "local"
    VECTOR = "vector"


@total_ordering
class Option:
    """An optimisation; ordered by kind, then axis, then the rest."""

    __slots__ = ()

    @property
    def sort_key(self) -> tuple[str, ...]:
        """The text of the kind and the fields, numbers padded for comparison."""
        values = astuple(self)  # type: ignore[call-overload]
        return (type(self).__name__, *(_sortable(value) for value in values))

    def __lt__(self, other: Option) -> bool:
        if not isinstance(other, Option):
            return NotImplemented
        return self.sort_key < other.sort_key


@dataclass(frozen=True, slots=True)
class Split(Option):
    """Split an axis of size n into n/amount outer and `amount` inner steps.

    ``for r in n`` becomes ``for r' in n/amount: for s in amount`` with
    ``r = r'*amount + s``, or ``r = s*(n/amount) + r'`` from the top.  Amount 0 is n.
    """

    axis: int
    amount: int
    target: Target
    top: bool = False

    def __str__(self) -> str:
        top = ":top" if self.top else ""
        return f"split:{self.axis}:{self.amount}:{self.target.value}{top}"


@dataclass(frozen=True, slots=True)
class PadTo(Option):
    """Grow an axis of constant size to the next multiple of `amount`, guarded."""

    axis: int
    amount: int

    def __str__(self) -> str:
        return f"pad:{self.axis}:{self.amount}"


@dataclass(frozen=True, slots=True)
class Swap(Option):
    """Exchange the launch order of two global axes."""

    axis: int
    with_axis: int

    def __str__(self) -> str:
        return f"swap:{self.axis}:{self.with_axis}"


@dataclass(frozen=True, slots=True)
class TensorCore(Option):
    """Replace a sum of products by a tensor core; -1 selects the first that fits."""

    axis: int
    tc_select: int = -1
    tc_opt: int = 0
    use_tc: int = 1

    def __str__(self) -> str:
        return f"tc:{self.axis}:{self.tc_select}:{self.tc_opt}:{self.use_tc}"


@dataclass(frozen=True, slots=True)
class Ok:
    """The option applied; these are the axes that it made."""

    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """The option does not apply, for this reason; nothing has changed."""

    reason: str


def format_schedule(opts: tuple[Option, ...]) -> str:
    """Return the text of a schedule; `parse_schedule` reads it back."""
    return ",".join(str(opt) for opt in opts)


def parse_schedule(text: str) -> tuple[Option, ...]:
    """Return the options that a schedule's text lists; empty text lists none.

    Raises
    ------
    ValueError
        If a part is no option.
    """
    parts = [part.strip() for part in text.split(",")]
    return tuple(_parse_option(part) for part in parts if part)


def _parse_option(text: str) -> Option:
    kind, *fields = text.split(":")
    try:
        if kind == "split":
            return _parse_split(fields)
        if kind in _PLAIN:
            cls, least, most = _PLAIN[kind]
            if least <= len(fields) <= most:
                return cls(*(int(value) for value in fields))
    except ValueError as error:
        msg = f"schedule option {text!r}: {error}"
        raise ValueError(msg) from None
    msg = f"{text!r} is no schedule option; known: split, {', '.join(_PLAIN)}"
    raise ValueError(msg)


def _parse_split(fields: list[str]) -> Split:
    if len(fields) not in {3, 4} or fields[3:] not in ([], ["top"]):
        msg = "a split is split:AXIS:AMOUNT:TARGET[:top]"
        raise ValueError(msg)
    axis, amount, target = fields[:3]
    return Split(int(axis), int(amount), Target(target), top=len(fields) == 4)


def _sortable(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return f"{int(value) + 10**9:012d}" if isinstance(value, int) else str(value)


_PLAIN = {"pad": (PadTo, 2, 2), "swap": (Swap, 2, 2), "tc": (TensorCore, 1, 4)}
