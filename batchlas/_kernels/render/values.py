"""Values as text, and the writer that collects the lines of a kernel."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from batchlas._kernels.ir import DType, Expr

_ATOM = re.compile(r"-?[\w.]+")


@dataclass(frozen=True, slots=True)
class Value:
    """The text of a value; a complex one has two parts.

    With more than one lane the parts are vectors.  A vector of bools is a vector of
    integers, 0 or -1, of the kernel's mask type.
    """

    dtype: DType
    parts: tuple[str, ...]
    lanes: int = 1

    @property
    def text(self) -> str:
        """The text of a value that is not complex."""
        (text,) = self.parts
        return text

    @property
    def is_atom(self) -> bool:
        """Whether the text is a name or a literal, cheap to repeat."""
        return all(_ATOM.fullmatch(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The axis that became vector lanes, and its value in each of them."""

    axis: int
    texts: tuple[str, ...]

    @property
    def numbers(self) -> tuple[str, ...]:
        """The lanes' own numbers, where no lane repeats another."""
        return tuple(str(lane) for lane in range(len(self.texts)))


@dataclass(frozen=True, slots=True)
class Env:
    """What names mean in one copy of the code."""

    axes: Mapping[int, str]
    temps: Mapping[int, Value] = field(default_factory=dict)
    sums: Mapping[int, Value] = field(default_factory=dict)  # by id of the Reduce
    vector: Lanes | None = None
    may_read: Value | None = None  # where global memory may be read at all

    def with_axis(self, ident: int, text: str) -> Env:
        """Return this environment with an axis bound."""
        return replace(self, axes={**self.axes, ident: text})

    def with_temp(self, ident: int, value: Value) -> Env:
        """Return this environment with a named value bound."""
        return replace(self, temps={**self.temps, ident: value})

    def with_sum(self, node: Expr, value: Value) -> Env:
        """Return this environment with the result of a reduction bound."""
        return replace(self, sums={**self.sums, id(node): value})

    def in_lane(self, lane: int, *, own: bool = False) -> Env:
        """Return the environment of one vector lane, where the axis is a scalar.

        Its `own` number is that of the lane itself, even if it repeats another.
        """
        if self.vector is None:
            return self
        texts = self.vector.numbers if own else self.vector.texts
        return replace(self, axes={**self.axes, self.vector.axis: texts[lane]})


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a statement stands: its copies, and where its stores happen."""

    envs: list[Env]
    mask: Value | None = None

    @property
    def first(self) -> Env:
        """The environment of what is written once."""
        return self.envs[0]

    def under(self, mask: Value | None) -> Scope:
        """Return this scope with another mask."""
        return replace(self, mask=mask)

    def with_envs(self, envs: list[Env]) -> Scope:
        """Return this scope with other environments."""
        return replace(self, envs=envs)


class Names:
    """Gives every thing of a kernel a name of its own."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._used = set(reserved)

    def fresh(self, base: str) -> str:
        """Return the base, or the base and the first number that is not taken."""
        name, number = base, 0
        while name in self._used:
            number += 1
            name = f"{base}_{number}"
        self._used.add(name)
        return name


class Writer:
    """Lines with indentation, in the block marks of one language."""

    def __init__(self, opening: str, closing: str, depth: int = 1) -> None:
        self.lines: list[str] = []
        self._opening = opening
        self._closing = closing
        self._depth = depth

    def line(self, text: str) -> None:
        """Write one line."""
        self.lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Write an indented block under a header."""
        self.line(header + self._opening)
        self._depth += 1
        yield
        self._depth -= 1
        if self._closing:
            self.line(self._closing)

    @contextmanager
    def aside(self, deeper: int) -> Iterator[list[str]]:
        """Collect lines elsewhere, that many blocks deeper, to be placed later."""
        kept, self.lines = self.lines, []
        self._depth += deeper
        aside = self.lines
        yield aside
        self._depth -= deeper
        self.lines = kept


def bare(text: str) -> str:
    """Return the text without parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text
