"""The progress bar by rich; imported only where rich is installed."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from batchlas.tune.times import duration

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Bar:
    def __init__(self, shown: Progress) -> None:
        self._shown = shown
        self._task = shown.add_task("", total=None, left="")

    def show(self, done: int, total: int, left_s: float, what: str) -> None:
        """Tell how many of how many are done, the seconds left, and what is next."""
        self._shown.update(
            self._task,
            completed=done,
            total=total,
            description=what,
            left=f"{duration(left_s)} left",
            refresh=True,
        )

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self._shown.console.print(text, markup=False, highlight=False)


@contextmanager
def bar() -> Iterator[_Bar]:
    """Yield a bar on stderr, gone when the block ends.

    It moves between the timings and never during one: it has no thread of its own.
    """
    columns = (
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, auto_refresh=False
    ) as shown:
        yield _Bar(shown)
