"""What a mutation is: one guard of the package, broken once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A guard, how it is broken, and the tests that must notice.

    Attributes
    ----------
    guards : str
        What is guarded: the mutation's name.
    file : str
        Path below ``batchlas``.
    old, new : str
        A text that the file holds exactly once, and what takes its place.
    tests : tuple of str
        Node ids below ``tests``; all pass on the package as it is, and at least one
        fails on the broken one.
    """

    guards: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def path(self):
        return Path("batchlas", self.file)

    def broken(self, text):
        """Return a file's text with the guard broken.

        Raises
        ------
        ValueError
            If the old text is not there exactly once.
        """
        count = text.count(self.old)
        if count != 1:
            message = f"{self.guards}: {count} times in {self.path}: {self.old!r}"
            raise ValueError(message)
        return text.replace(self.old, self.new)


def mutation(guards, file, old, new, *tests):
    """Return a mutation of a file of the package."""
    return Mutation(guards, file, old, new, tests)
