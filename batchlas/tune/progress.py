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

from batchlas.tune.times import duration

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
