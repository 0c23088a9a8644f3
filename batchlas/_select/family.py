"""Kernel families, choices and their one spelling.

Decided here: what a choice is (one family with its knobs) and how it is written,
``family`` or ``family:field=int[:field=int...]``. Tables, pins, traces, coverage and
test ids all use this spelling. Whatever a driver derives from the shape or the device
stays inside the driver and is never a field.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, fields
from typing import TYPE_CHECKING, ClassVar

from batchlas.exceptions import SpellingError

if TYPE_CHECKING:
    from collections.abc import Iterable

# 18 digits fit in 64 bits; Python itself refuses to convert thousands of digits.
_INTEGER = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True, slots=True, repr=False)
class Family:
    """One kernel driver; the int fields of a subclass are the knobs a tuner varies.

    Attributes
    ----------
    name : str
        One short lower-case word for the mechanism.
    uses_library : bool
        Whether it stands on a vendor's linear algebra library; such a family is not
        what a ``native`` pin asks for.
    """

    name: ClassVar[str]
    uses_library: ClassVar[bool] = False

    def __str__(self) -> str:
        """Return the spelling, always in the long form."""
        knobs = zip(knob_names(type(self)), astuple(self), strict=True)
        return ":".join([self.name, *(f"{knob}={value}" for knob, value in knobs)])

    def __repr__(self) -> str:
        """Name a family without knobs, whose class has no telling name of its own."""
        return f"<{self}>"


def family(name: str, *, uses_library: bool = False) -> type[Family]:
    """Return a new family without knobs.

    Parameters
    ----------
    name : str
        The family's name.
    uses_library : bool, default False
        Whether it stands on a vendor's linear algebra library.

    Examples
    --------
    >>> Vendor = family("vendor", uses_library=True)
    >>> str(Vendor())
    'vendor'
    """
    # A class body does not see an enclosing variable that it assigns itself.
    word, library = name, uses_library

    @dataclass(frozen=True, slots=True, repr=False)
    class KnobFree(Family):
        name: ClassVar[str] = word
        uses_library: ClassVar[bool] = library

    return KnobFree


def all_of(*families: type[Family]) -> tuple[Family, ...]:
    """Return one choice per family without knobs, in the order given."""
    return tuple(each() for each in families)


def knob_names(of: type[Family]) -> tuple[str, ...]:
    """Return the names of the integer fields in order."""
    return tuple(field.name for field in fields(of))


def parse(text: str, families: Iterable[type[Family]]) -> Family:
    """Return the choice that `text` spells.

    Parameters
    ----------
    text : str
        A spelling; a value without ``field=`` belongs to the field at its place.
    families : iterable of Family classes
        The families that may be named.

    Raises
    ------
    SpellingError
        For an unknown family or field, a wrong number of values, a field given twice,
        or a value that is not an integer.

    Examples
    --------
    >>> from batchlas._select import Family, parse
    >>> parse("lpanel:8", [Lpanel])  # doctest: +SKIP
    Lpanel(panel=8)
    """
    name, *parts = text.split(":")
    known = {each.name: each for each in families}
    if name not in known:
        _refuse(text, f"no family {name!r}; families: {', '.join(known)}")
    knobs = knob_names(known[name])
    if len(parts) != len(knobs):
        _refuse(text, f"{len(parts)} values; the fields are ({', '.join(knobs)})")
    values: dict[str, int] = {}
    for place, part in zip(knobs, parts, strict=True):
        field, equals, number = part.rpartition("=")
        knob = field if equals else place
        if knob not in knobs:
            _refuse(text, f"no field {knob!r}; the fields are ({', '.join(knobs)})")
        if knob in values:
            _refuse(text, f"field {knob!r} is given twice")
        if not _INTEGER.fullmatch(number):
            _refuse(text, f"{number!r} is not an integer")
        values[knob] = int(number)
    return known[name](**values)


def _refuse(text: str, why: str) -> None:
    message = f"{text!r}: {why}"
    raise SpellingError(message)
