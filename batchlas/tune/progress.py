"""What the person at the terminal sees of a long run: how far, and how long still.

A bar by rich where it is installed and somebody watches; otherwise a plain line every
few seconds.
"""

from __future__ import annotations

import importlib.util
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

_EVERY_S = 10.0


class Progress(Protocol):
    """Something that shows progress."""

    def show(self, done: int, total: int, left_s: float, what: str) -> None:
        """Tell how many of how many are done, the seconds left, and what is next."""

    def say(self, text: str) -> None:
        """Print a line of its own."""


class _Lines:
    """Plain lines on stderr, the last state always among them."""

    def __init__(self) -> None:
        self._shown = -_EVERY_S

    def show(self, done: int, total: int, left_s: float, what: str) -> None:
        now = time.monotonic()
        if now - self._shown >= _EVERY_S or done == total:
            self._shown = now
            self.say(f"{done}/{total}, {duration(left_s)} left: {what}")

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - a command's own output


@contextmanager
def progress() -> Iterator[Progress]:
    """Yield what shows progress on stderr until the block ends."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield _Lines()
        return
    from batchlas.tune.bar import bar

    with bar() as shown:
        yield shown


def duration(seconds: float) -> str:
    """Return a length of time for people, such as ``2m05s``."""
    whole = max(0, round(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}h{minutes:02}m"
    return f"{minutes}m{whole % 60:02}s" if minutes else f"{whole}s"


def seconds(text: str) -> float:
    """Return the seconds of a text such as ``90``, ``90s``, ``10m`` or ``1.5h``.

    Raises
    ------
    ValueError
        For any other text.
    """
    units = {"s": 1, "m": 60, "h": 3600}
    number = text[:-1] if text[-1:] in units else text
    value = float(number) * units.get(text[-1:], 1)
    if not 0 <= value < float("inf"):
        message = f"{text!r} is no length of time"
        raise ValueError(message)
    return value
