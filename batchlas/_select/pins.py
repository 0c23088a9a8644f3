"""Pins: a user's or a test's word on which choice an op shall make.

Decided here: which pin is in force for an op. A scoped pin wins over
``BATCHLAS_<OP>_ROUTE``, on its own thread or task. What a pin does to a decision is in
``decision``.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from batchlas._runtime.settings import PREFIX
from batchlas._runtime.state import process_wide

if TYPE_CHECKING:
    from batchlas._runtime.settings import Settings
    from batchlas._select.families import Family

AUTO = "auto"
NATIVE = "native"
VENDOR = "vendor"
WORDS = (AUTO, NATIVE, VENDOR)


@dataclass(frozen=True, slots=True)
class Pin:
    """One pin.

    Attributes
    ----------
    text : str
        As written.
    where : str
        What wrote it, for messages: a variable or a scoped pin.
    strict : bool
        Whether a class word that cannot serve is an error rather than a warning.
    """

    text: str
    where: str
    strict: bool = False

    @property
    def word(self) -> str:
        """Return the text trimmed and in lower case; nothing at all means auto."""
        return self.text.strip().lower() or AUTO


_scoped: ContextVar[tuple[tuple[str, Pin], ...]] = process_wide(
    "pins", lambda: ContextVar("batchlas_pins", default=())
)

scoped_pins = _scoped.get
"""Return the scoped pins that are open on this thread or task, outermost first."""


def scoped_pin(op: str) -> Pin | None:
    """Return the innermost scoped pin of `op`, None without one."""
    for name, pin in reversed(scoped_pins()):
        if name == op:
            return pin
    return None


def exported_pin(op: str, now: Settings) -> Pin | None:
    """Return the pin of `op` in the settings `now`, None without one."""
    text = now.routes.get(op)
    return None if text is None else Pin(text, f"{PREFIX}{op.upper()}_ROUTE={text!r}")


class ScopedPin:
    """Pins `op` for a ``with`` block; blocks nest, and the outer pin comes back.

    Parameters
    ----------
    op : str
        The op to pin.
    choice : str or Family
        ``auto``, ``native``, ``vendor``, a spelling, or the choice itself.

    Examples
    --------
    >>> with ScopedPin("potrf", "lpanel:panel=8"):  # doctest: +SKIP
    ...     batchlas.linalg.cholesky(a)
    """

    strict: ClassVar[bool] = False

    def __init__(self, op: str, choice: str | Family) -> None:
        text = str(choice)
        where = f"{type(self).__name__}({op!r}, {text!r})"
        self._op = op
        self._pin = Pin(text, where, self.strict)
        self._tokens: list[Token[tuple[tuple[str, Pin], ...]]] = []

    def __enter__(self) -> None:
        self._tokens.append(_scoped.set((*scoped_pins(), (self._op, self._pin))))

    def __exit__(self, *_error: object) -> None:
        _scoped.reset(self._tokens.pop())


class StrictPin(ScopedPin):
    """A scoped pin whose class word raises PinError where nothing of it can run."""

    strict: ClassVar[bool] = True
