"""Cholesky of one matrix per lane: the kernel behind the family ``lane``.

A thread holds its matrix in registers and factors it by 4x4 tiles, left-looking: a tile
is the input minus the products of the tiles to its left, then either factored (on the
diagonal) or solved against the factored one above it. Sixteen sums are in flight for
eight loads, which is what keeps both multiply-add units of a core busy.

The schedule makes the batch axis the lanes of vectors, so a vector register holds one
element of several matrices. Matrices are read and written in runs of consecutive
elements, one run per vector, which the OpenCL renderer prints as a transposed tile.

Up to order 8 all loops are written out and every element has a name; above, the matrix
is an array in private memory, since unrolled code would take seconds to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from batchlas._kernels.build import KernelBuilder, Ref
from batchlas._kernels.functions import (
    cast,
    conj,
    fma,
    imag,
    make_complex,
    minimum,
    real,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Kernel, Operand, as_expr
from batchlas._kernels.limits import TILE
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_Tile: TypeAlias = "dict[tuple[int, int], Ref]"

UNROLLED = 8
"""Largest order whose loops are written out."""


def potrf(n: int, dtype: DType, uplo: str, run: int, multiple_of: int) -> Kernel:
    """Return the kernel, unscheduled.

    Parameters
    ----------
    n : int
        Order, at least 1.
    dtype : DType
        Real or complex floating point.
    uplo : {"L", "U"}
        Triangle that is read and written; the other one is written as zeros.
    run : int
        Consecutive elements that are read and written together.
    multiple_of : int
        What divides the batch of every launch.

    Returns
    -------
    Kernel
        Arguments ``nb, a, l, info``: the batch, the packed input, the packed factor and
        the order of the first leading minor that is not positive definite, or 0. A
        NaN or infinity in the triangle makes that minor fail.
    """
    return _Potrf(n, dtype, uplo, run, multiple_of).kernel()


class _Potrf:
    """The parts of the kernel, in the order in which they are written."""

    def __init__(
        self, n: int, dtype: DType, uplo: str, run: int, multiple_of: int
    ) -> None:
        self.n, self.dtype, self.uplo, self.run = n, dtype, uplo, run
        k = self.k = KernelBuilder(f"potrf_{uplo}{n}_{dtype.value}")
        nb = self.nb = k.scalar("nb", multiple_of=multiple_of)
        self.a = k.array("a", dtype, (nb, n, n))
        self.l = k.array("l", dtype, (nb, n, n), streams=True)
        self.info = k.array("info", DType.INT32, (nb,))
        self.unrolled = n <= UNROLLED
        self.order = -(-n // TILE) * TILE  # padded with the identity to whole tiles
        shape = (self.order, self.order)
        self.w: dict[tuple[Operand, Operand], Expr] | Ref = (
            {} if self.unrolled else k.register("w", dtype, shape)
        )

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        with self.k.weak(self.nb, "b") as b:
            self._read(b)
            self._pad()
            self.bad = self.k.register("bad", self.dtype.real)
            self.bad.set(0)
            for j in self._loop(0, self.order // TILE):
                self._column(j)
            self._write(b)
            self.k.store(self.info, b, cast(self.bad[()], DType.INT32))
        return self.k.finish()

    def _loop(self, start: Operand, stop: Operand) -> Iterator[Operand]:
        """Yield the steps of a loop: each number, or one axis for all of them."""
        if isinstance(start, int) and isinstance(stop, int) and self.unrolled:
            yield from range(start, stop)
            return
        first, last = as_expr(start, INDEX), as_expr(stop, INDEX)
        with self.k.serial(fold(last - first), "t") as axis:
            yield fold(axis + first)

    # the matrix in and out

    def _read(self, b: Expr) -> None:
        """Read the triangle in runs; the upper one becomes the lower by conjugation."""
        if self.unrolled:
            for places in self._runs():
                if any(self._is_read(i, j) for i, j in places):
                    self._read_run(b, places)
            return
        per_row, rest = divmod(self.n, self.run)
        for i in self._loop(0, self.n):
            edge = as_expr(i, INDEX) // self.run  # the run that meets the diagonal
            first = edge if self.uplo == "U" else 0
            last = per_row if self.uplo == "U" else minimum(edge + 1, per_row)
            for c in self._loop(first, last):
                self._read_run(b, [(i, c * self.run + e) for e in range(self.run)])
            if rest:
                self._read_run(b, [(i, j) for j in range(self.n - rest, self.n)])

    def _runs(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the places of a whole matrix in runs of consecutive elements."""
        for first in range(0, self.n**2, self.run):
            stop = min(first + self.run, self.n**2)
            yield [divmod(e, self.n) for e in range(first, stop)]

    def _is_read(self, i: int, j: int) -> bool:
        return j <= i if self.uplo == "L" else i <= j

    def _read_run(self, b: Expr, places: Sequence[tuple[Operand, Operand]]) -> None:
        values = [self.k.let(self.a[b, i, j], "x") for i, j in places]
        for (i, j), x in zip(places, values, strict=True):
            if isinstance(i, int) and isinstance(j, int) and not self._is_read(i, j):
                continue
            if self.uplo == "L":
                self.w[i, j] = x
            else:
                self.w[j, i] = conj(x)

    def _pad(self) -> None:
        """Fill up to whole tiles with the identity."""
        for i in range(self.n, self.order):
            for j in range(i):
                self.w[i, j] = Const(0, self.dtype)
            self.w[i, i] = Const(1, self.dtype)

    def _write(self, b: Expr) -> None:
        """Write the factor in runs, zeros in the other triangle."""
        if self.unrolled:
            for places in self._runs():
                self._write_run(b, places)
            return
        per_row, rest = divmod(self.n, self.run)
        for i in self._loop(0, self.n):
            for c in self._loop(0, per_row):
                self._write_run(b, [(i, c * self.run + e) for e in range(self.run)])
            if rest:
                self._write_run(b, [(i, j) for j in range(self.n - rest, self.n)])

    def _write_run(self, b: Expr, places: Sequence[tuple[Operand, Operand]]) -> None:
        values = [self.k.let(self._result(i, j), "y") for i, j in places]
        for (i, j), y in zip(places, values, strict=True):
            self.l[b, i, j] = y

    def _result(self, i: Operand, j: Operand) -> Expr:
        """Return an element of the factor, zero in the other triangle."""
        row, column = (i, j) if self.uplo == "L" else (j, i)
        if isinstance(self.w, dict):  # only the factor's triangle has names
            kept = self.w.get((row, column), Const(0, self.dtype))
        else:
            inside = as_expr(column, INDEX) <= as_expr(row, INDEX)
            kept = self.w.get(row, column, gate=inside)
        return kept if self.uplo == "L" else conj(kept)

    # the factorisation

    def _column(self, j: Operand) -> None:
        """Factor the tile column j: its diagonal tile, then those below it."""
        j0 = j * TILE
        tile = self._tile(j0, j0, lower=True)
        self._subtract(tile, j0, j0, lower=True)
        inverse = self._factor(tile, j0)
        below = self.order // TILE
        for i in self._loop(j + 1, below):
            i0 = i * TILE
            other = self._tile(i0, j0, lower=False)
            self._subtract(other, i0, j0, lower=False)
            self._solve(other, tile, inverse)
            self._keep(other, i0, j0)

    def _tile(self, i0: Operand, j0: Operand, *, lower: bool) -> _Tile:
        """Load a tile into sums."""
        tile = {}
        for r, s in _cells(lower=lower):
            sum_ = self.k.register(f"{'d' if lower else 'o'}{r}{s}", self.dtype)
            sum_.set(self.w[i0 + r, j0 + s])
            tile[r, s] = sum_
        return tile

    def _subtract(self, tile: _Tile, i0: Operand, j0: Operand, *, lower: bool) -> None:
        """Subtract the products of the tiles to the left."""
        for k in self._loop(0, j0):
            y = [self.k.let(self.w[j0 + s, k], "y") for s in range(TILE)]
            x = (
                y
                if lower
                else [self.k.let(self.w[i0 + r, k], "x") for r in range(TILE)]
            )
            for r, s in _cells(lower=lower):
                self._minus(tile[r, s], x[r], y[s])

    def _minus(self, sum_: Ref, x: Expr, y: Expr) -> None:
        """Subtract x conj(y)."""
        sum_.set(fma(-x, conj(y), sum_[()]))

    def _factor(self, tile: _Tile, j0: Operand) -> list[Expr]:
        """Factor the diagonal tile in place; return its diagonal's inverses."""
        inverse: list[Expr] = []
        for s in range(TILE):
            for k in range(s):
                self._minus(tile[s, s], tile[s, k][()], tile[s, k][()])
            pivot = self.k.let(real(tile[s, s][()]), "pivot")
            self._judge(pivot, j0 + (s + 1))
            root = self.k.let(sqrt(pivot), "root")
            r_inverse = self.k.let(1.0 / root, "inverse")
            inverse.append(r_inverse)
            tile[s, s].set(self._complex(root))
            for r in range(s + 1, TILE):
                for k in range(s):
                    self._minus(tile[r, s], tile[r, k][()], tile[s, k][()])
                tile[r, s].set(self._scaled(tile[r, s][()], r_inverse))
        self._keep(tile, j0, j0)
        return inverse

    def _judge(self, pivot: Expr, minor: Operand) -> None:
        """Note the first minor whose pivot is not positive and finite."""
        infinity = Const(float("inf"), self.dtype.real)
        good = (pivot > 0) & (pivot < infinity)
        order = cast(as_expr(minor, INDEX), self.dtype.real)
        bad = self.bad[()]
        self.bad.set(where(good | (bad > 0), bad, order))

    def _solve(
        self,
        tile: _Tile,
        diagonal: _Tile,
        inverse: list[Expr],
    ) -> None:
        """Solve X D^H = tile in place."""
        for s in range(TILE):
            for r in range(TILE):
                for k in range(s):
                    self._minus(tile[r, s], tile[r, k][()], diagonal[s, k][()])
                tile[r, s].set(self._scaled(tile[r, s][()], inverse[s]))

    def _keep(self, tile: _Tile, i0: Operand, j0: Operand) -> None:
        for (r, s), sum_ in tile.items():
            self.w[i0 + r, j0 + s] = self.k.let(sum_[()], "z")

    def _complex(self, x: Expr) -> Expr:
        return make_complex(x, 0) if self.dtype.is_complex else x

    def _scaled(self, x: Expr, factor: Expr) -> Expr:
        """Multiply by a real number."""
        if self.dtype.is_complex:
            return make_complex(real(x) * factor, imag(x) * factor)
        return x * factor


def _cells(*, lower: bool) -> list[tuple[int, int]]:
    """Return the places of a tile, or of its lower triangle, column by column."""
    return [(r, s) for s in range(TILE) for r in range(s if lower else 0, TILE)]
