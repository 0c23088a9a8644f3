"""Matrices and vectors in global scratch memory, one of each per vector lane.

Where a matrix's order is an argument of the kernel, registers cannot hold it. Scratch
memory keeps element e of all the lanes' matrices side by side, so that a vector
register is loaded at once; a complex element is two such vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.functions import imag, make_complex, real
from batchlas._kernels.ir import INDEX, DType, Expr, as_expr
from batchlas._kernels.limits import pitch
from batchlas._kernels.rows import STEP
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batchlas._kernels.build import KernelBuilder, Ref
    from batchlas._kernels.ir import Axis
    from batchlas._kernels.rows import Place


class Scratch:
    """The memory of a kernel, handed out from the start; `reals` is the sum so far."""

    def __init__(self, k: KernelBuilder, memory: Ref, group: Axis, lane: Axis) -> None:
        self.k, self.memory, self.group, self.lane = k, memory, group, lane
        self.reals: Expr = as_expr(0, INDEX)

    def matrix(self, rows: Place, columns: Place, dtype: DType) -> Matrix:
        """Hand out a matrix, its rows `limits.pitch` apart."""
        parts = 2 if dtype.is_complex else 1
        apart = self.k.let(fold(pitch(as_expr(columns, INDEX))), "pitch")
        start = self._take(as_expr(rows, INDEX) * (apart * parts))
        return Matrix(self, start, apart, dtype)

    def vector(self, size: Place, dtype: DType) -> Vector:
        """Hand out a vector."""
        parts = 2 if dtype.is_complex else 1
        return Vector(Matrix(self, self._take(as_expr(size, INDEX) * parts), 0, dtype))

    def _take(self, count: Expr) -> Expr:
        start = self.k.let(fold(self.reals), "start")
        self.reals = fold(start + count)
        return start

    def load(self, place: Expr) -> Expr:
        """Return one real number of each lane."""
        return self.memory[self.group, place, self.lane]

    def store(self, place: Expr, value: Expr) -> None:
        """Store one real number of each lane."""
        self.memory[self.group, place, self.lane] = value


class Matrix:
    """Elements ``[i, j]`` in scratch memory."""

    def __init__(
        self, scratch: Scratch, start: Expr, pitch: Place, dtype: DType
    ) -> None:
        self.scratch, self.start, self.pitch, self.dtype = scratch, start, pitch, dtype
        self.parts, self.k = 2 if dtype.is_complex else 1, scratch.k

    def _place(self, index: tuple[Place, Place]) -> Expr:
        i, j = as_expr(index[0], INDEX), as_expr(index[1], INDEX)
        pitch = as_expr(self.pitch, INDEX)
        return fold(self.start + (i * pitch + j) * self.parts)

    def __getitem__(self, index: tuple[Place, Place]) -> Expr:
        place = self._place(index)
        if not self.dtype.is_complex:
            return self.scratch.load(place)
        re, im = self.scratch.load(place), self.scratch.load(fold(place + 1))
        return make_complex(re, im)

    def __setitem__(self, index: tuple[Place, Place], value: Expr) -> None:
        place = self._place(index)
        if not self.dtype.is_complex:
            self.scratch.store(place, value)
            return
        value = self.scratch.k.let(value, "z")
        self.scratch.store(place, real(value))
        self.scratch.store(fold(place + 1), imag(value))

    def loop(self, start: Place, stop: Place, name: str = "i") -> Iterator[Place]:
        """Yield the axis of a serial loop."""
        yield from loop(self.k, start, stop, name)

    def steps(self, size: Place) -> Iterator[list[Place]]:
        """Yield 0 ... size-1 in steps of `STEP` numbers, then one by one."""
        for block in blocks(self.k, 0, size):
            yield list(block)

    def as_reals(self) -> Matrix:
        """Return the same memory as a matrix of reals, twice as wide if complex."""
        pitch = fold(as_expr(self.pitch, INDEX) * self.parts)
        return Matrix(self.scratch, self.start, pitch, self.dtype.real)


class Vector:
    """Elements ``[i]`` in scratch memory."""

    def __init__(self, row: Matrix) -> None:
        self._row, self.dtype = row, row.dtype

    def __getitem__(self, i: Place) -> Expr:
        return self._row[0, i]

    def __setitem__(self, i: Place, value: Expr) -> None:
        self._row[0, i] = value


def loop(
    k: KernelBuilder, start: Place, stop: Place, name: str = "i"
) -> Iterator[Expr]:
    """Yield the axis of a serial loop."""
    first, last = as_expr(start, INDEX), as_expr(stop, INDEX)
    with k.serial(fold(last - first), name) as axis:
        yield fold(axis + first)


def blocks(k: KernelBuilder, start: Place, stop: Place) -> Iterator[list[Expr]]:
    """Yield start ... stop-1 in blocks of `STEP`, then one by one."""
    first = as_expr(start, INDEX)
    count = fold(as_expr(stop, INDEX) - first)
    for b in loop(k, 0, count // STEP, "block"):
        yield [fold(first + b * STEP + e) for e in range(STEP)]
    for r in loop(k, count // STEP * STEP, count, "rest"):
        yield [fold(first + r)]
