"""The factorisation of one matrix by 4x4 tiles, wherever its elements are kept.

Row by row of tiles: a tile is the input minus the products of the tiles to its left,
then either solved against the factored one above it or, on the diagonal, factored.
Sixteen sums are in flight for eight loads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from batchlas._kernels.functions import (
    cast,
    conj,
    fma,
    imag,
    isnan,
    make_complex,
    minimum,
    real,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Operand, as_expr
from batchlas._kernels.limits import TILE, padded
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchlas._kernels.build import KernelBuilder, Ref

_Tile: TypeAlias = "dict[tuple[int, int], Ref]"

# The copies of four rows of these orders are written out; of others, compilers make
# something slow.
_WRITTEN_OUT = 16


class Elements(Protocol):
    """The lower triangle, in rows of tiles: ``w[i, r, j]`` is row ``TILE * i + r``."""

    def __getitem__(self, index: tuple[Operand, Operand, Operand], /) -> Expr:
        """Return an element."""

    def __setitem__(self, index: tuple[Operand, Operand, Operand], v: Expr, /) -> None:
        """Set an element."""


class Factorisation:
    """Writes the statements that factor the elements ``w`` in place.

    With `counts` the status is the order of the first leading minor that is not
    positive definite, or 0. Without, it is 1 for any such minor: in vectors the
    comparisons at every pivot took half the time of an 8x8 factorisation. If
    `unrolled`, all loops are written out.
    """

    def __init__(
        self,
        k: KernelBuilder,
        n: int,
        dtype: DType,
        w: Elements,
        *,
        counts: bool,
        unrolled: bool,
    ) -> None:
        self.k, self.n, self.dtype, self.w, self.counts = k, n, dtype, w, counts
        self.unrolled = unrolled
        self.order = padded(n)
        # of the factor's diagonal
        self.inverses: Ref | dict[Operand, Expr] = (
            {} if self.unrolled else k.register("inverses", dtype.real, (self.order,))
        )

    def write(
        self,
        begin: Callable[[Operand], None] | None = None,
        finish: Callable[[Operand], None] | None = None,
    ) -> Expr:
        """Write everything; return the status, an int32.

        A row of tiles needs only the rows above it: `begin` is called with each before
        its elements are used, `finish` when it is complete. So what they read and
        write of the arrays goes on beside the computing, not before and after it.
        """
        self._pad()
        self.bad = self.k.register("bad", self.dtype.real)
        self.bad.set(0)
        for i in self.loop(0, self.order // TILE):
            if begin is not None:
                begin(i)
            for j in self.loop(0, i):
                self._beside(i, j)
            self._diagonal(i)
            if finish is not None:
                finish(i)
        if self.counts:
            return cast(self.bad[()], DType.INT32)
        zero = Const(0, self.dtype.real)
        broken = where(isnan(self.bad[()]), Const(1, self.dtype.real), zero)
        return cast(broken, DType.INT32)

    def loop(self, start: Operand, stop: Operand) -> Iterator[Operand]:
        """Yield the steps of a loop: each number, or one axis for all of them."""
        if isinstance(start, int) and isinstance(stop, int) and self.unrolled:
            yield from range(start, stop)
            return
        first, last = as_expr(start, INDEX), as_expr(stop, INDEX)
        with self.k.serial(fold(last - first), "t") as axis:
            yield fold(axis + first)

    def rows(self, i: Operand) -> Iterator[Operand]:
        """Yield the rows of a row of tiles that the matrix has."""
        if self.n % _WRITTEN_OUT == 0:
            yield from range(TILE)
        else:
            yield from self.loop(0, minimum(self.n - TILE * i, TILE))

    def _pad(self) -> None:
        """Fill up to whole tiles with the identity, where tiles are in loops."""
        if self.unrolled:
            return
        for i in range(self.n, self.order):
            for j in range(i + 1):
                self.w[i // TILE, i % TILE, j] = Const(int(i == j), self.dtype)

    def _beside(self, i: Operand, j: Operand) -> None:
        """Solve the tile (i, j) below the diagonal."""
        tile = self._tile(i, j)
        self._subtract(tile, i, j)
        self._solve(tile, j)
        self._keep(tile, i, j)

    def _diagonal(self, i: Operand) -> None:
        """Factor the tile (i, i)."""
        tile = self._tile(i, i)
        self._subtract(tile, i, i)
        self._factor(tile, i)
        self._keep(tile, i, i)

    def _extent(self, i: Operand) -> int:
        """Return the rows of a tile; where loops are written out, only real ones."""
        if self.unrolled and isinstance(i, int):
            return min(TILE, self.n - TILE * i)
        return TILE

    def _tile(self, i: Operand, j: Operand) -> _Tile:
        """Load a tile, or the lower triangle of one on the diagonal, into sums."""
        on_diagonal = i is j
        name = "d" if on_diagonal else "o"
        tile = {}
        for s in range(self._extent(j)):
            for r in range(s if on_diagonal else 0, self._extent(i)):
                sum_ = self.k.register(f"{name}{r}{s}", self.dtype)
                sum_.set(self.w[i, r, j * TILE + s])
                tile[r, s] = sum_
        return tile

    def _subtract(self, tile: _Tile, i: Operand, j: Operand) -> None:
        """Subtract the products of the tiles to the left."""
        for k in self.loop(0, j * TILE):
            y = [self.k.let(self.w[j, s, k], "y") for s in range(self._extent(j))]
            x = y
            if i is not j:
                x = [self.k.let(self.w[i, r, k], "x") for r in range(self._extent(i))]
            for (r, s), sum_ in tile.items():
                self._minus(sum_, x[r], y[s])

    def _minus(self, sum_: Ref, x: Expr, y: Expr) -> None:
        """Subtract x conj(y)."""
        sum_.set(fma(-x, conj(y), sum_[()]))

    def _factor(self, tile: _Tile, i: Operand) -> None:
        """Factor the diagonal tile in place, and note its diagonal's inverses."""
        for s in range(self._extent(i)):
            for k in range(s):
                self._minus(tile[s, s], tile[s, k][()], tile[s, k][()])
            pivot = self.k.let(real(tile[s, s][()]), "pivot")
            root = self.k.let(sqrt(pivot), "root")
            tile[s, s].set(self._complex(root))
            column = i * TILE + s
            if column + 1 == self.n and not self.counts:
                # nothing is divided by the last root, so a comparison is cheaper
                self._judge_last(root)
                break
            inverse = self.k.let(1.0 / root, "inverse")
            self._judge(pivot, root, inverse, column + 1)
            self.inverses[column] = inverse
            for r in range(s + 1, self._extent(i)):
                for k in range(s):
                    self._minus(tile[r, s], tile[r, k][()], tile[s, k][()])
                tile[r, s].set(self._scaled(tile[r, s][()], inverse))

    def _judge(self, pivot: Expr, root: Expr, inverse: Expr, minor: Operand) -> None:
        """Note the first minor whose pivot is not positive and finite, or that one is.

        The product of a root and its inverse is 1, or NaN: of a root that is NaN, 0
        times infinity for a pivot of zero, infinity times 0 for one that is infinite.
        """
        if not self.counts:
            self.bad.set(fma(root, inverse, self.bad[()]))
            return
        infinity = Const(float("inf"), self.dtype.real)
        good = (pivot > 0) & (pivot < infinity)
        order = cast(as_expr(minor, INDEX), self.dtype.real)
        bad = self.bad[()]
        self.bad.set(where(good | (bad > 0), bad, order))

    def _judge_last(self, root: Expr) -> None:
        """Note that the last root is not positive and finite.

        Zero times a root that is infinite or NaN is NaN.
        """
        nan = Const(float("nan"), self.dtype.real)
        checked = fma(root, Const(0, self.dtype.real), self.bad[()])
        self.bad.set(where(root > 0, checked, nan))

    def _solve(self, tile: _Tile, j: Operand) -> None:
        """Solve X D^H = tile in place, column by column, with D the tile (j, j)."""
        columns = range(self._extent(j))
        inverse = [self.k.let(self.inverses[j * TILE + s], "inverse") for s in columns]
        diagonal = {
            (s, k): self.k.let(self.w[j, s, j * TILE + k], "d")
            for s in columns
            for k in range(s)
        }
        for (r, s), sum_ in tile.items():
            for k in range(s):
                self._minus(sum_, tile[r, k][()], diagonal[s, k])
            sum_.set(self._scaled(sum_[()], inverse[s]))

    def _keep(self, tile: _Tile, i: Operand, j: Operand) -> None:
        for (r, s), sum_ in tile.items():
            self.w[i, r, j * TILE + s] = self.k.let(sum_[()], "z")

    def _complex(self, x: Expr) -> Expr:
        return make_complex(x, 0) if self.dtype.is_complex else x

    def _scaled(self, x: Expr, factor: Expr) -> Expr:
        """Multiply by a real number."""
        if self.dtype.is_complex:
            return make_complex(real(x) * factor, imag(x) * factor)
        return x * factor
