"""Cholesky of one matrix per lane: the kernel behind the family ``lane``.

A thread holds its matrix in registers and factors it by 4x4 tiles (`potrf_tiles`),
which keeps both multiply-add units of a core busy.

The schedule makes the batch axis the lanes of vectors, so a vector register holds one
element of several matrices. Matrices are read and written in runs of consecutive
elements, one run per vector, which the OpenCL renderer prints as a transposed tile.

Up to order 16 all loops are written out and every element has a name, so that a matrix
is written as one sequence of whole vectors, with nothing to compute above the diagonal.
Above, the matrix is an array in private memory, since unrolled code would take seconds
to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import conj, minimum
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Kernel, Operand, as_expr
from batchlas._kernels.limits import TILE, padded
from batchlas._kernels.potrf_tiles import Factorisation
from batchlas._runtime.devices import CACHE_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

UNROLLED = 16
"""Largest order whose loops are written out."""

_MOST_HALF_LINES = 4


def potrf(
    n: int, dtype: DType, uplo: str, run: int, multiple_of: int, ahead: int = 0
) -> Kernel:
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
    ahead : int
        While a matrix is factored, the one this much further in the batch is
        prefetched; 0 for none.

    Returns
    -------
    Kernel
        Arguments ``nb, a, l, info``: the batch, the packed input, the packed factor,
        and 1 for a matrix that is not positive definite or whose triangle holds NaN or
        infinity, else 0. The factor's diagonal then tells the first minor that fails:
        its element is not positive and finite, and all before it are.
    """
    return _Potrf(n, dtype, uplo, run, multiple_of, ahead).kernel()


class _Named:
    """Elements under names of their own, each read when it is first asked for."""

    def __init__(self, read: Callable[[int, int], None]) -> None:
        self.cells: dict[tuple[int, int], Expr] = {}
        self._read = read

    def __getitem__(self, index: tuple[Operand, Operand, Operand]) -> Expr:
        place = self._place(index)
        if place not in self.cells:
            self._read(*place)
        return self.cells[place]

    def __setitem__(self, index: tuple[Operand, Operand, Operand], v: Expr) -> None:
        self.cells[self._place(index)] = v

    def _place(self, index: tuple[Operand, Operand, Operand]) -> tuple[int, int]:
        i, r, column = cast("tuple[int, int, int]", index)
        return TILE * i + r, column


class _Panels:
    """Elements in private memory.

    A row of tiles lies column by column, so that the products walk through memory.
    """

    def __init__(self, k: KernelBuilder, order: int, dtype: DType) -> None:
        self.w = k.register("w", dtype, (order // TILE, order, TILE))

    def __getitem__(self, index: tuple[Operand, Operand, Operand]) -> Expr:
        i, r, column = index
        return self.w[i, column, r]

    def __setitem__(self, index: tuple[Operand, Operand, Operand], v: Expr) -> None:
        i, r, column = index
        self.w[i, column, r] = v


class _Potrf:
    """The parts of the kernel, in the order in which they are written."""

    def __init__(
        self,
        n: int,
        dtype: DType,
        uplo: str,
        run: int,
        multiple_of: int,
        ahead: int,
    ) -> None:
        self.n, self.dtype, self.uplo, self.ahead = n, dtype, uplo, ahead
        # Read by vectors. Written likewise where that leaves few lines half written,
        # else by cache lines: in pieces they cost ten times as much.
        line = CACHE_LINE_BYTES // dtype.itemsize
        by_lines = multiple_of > _MOST_HALF_LINES and n % line == 0
        self.run, self.line = run, max(run, line) if by_lines else run
        k = self.k = KernelBuilder(f"potrf_{uplo}{n}_{dtype.value}")
        nb = self.nb = k.scalar("nb", multiple_of=multiple_of)
        self.a = k.array("a", dtype, (nb, n, n))
        self.l = k.array("l", dtype, (nb, n, n), streams=True)
        self.info = k.array("info", DType.INT32, (nb,))
        self.unrolled = n <= UNROLLED
        self.w: _Named | _Panels = (
            _Named(self._read_named) if self.unrolled else _Panels(k, padded(n), dtype)
        )
        self.unwritten = list(self._runs(self.line)) if self.unrolled else []
        self.tiles = Factorisation(
            k, n, dtype, self.w, counts=False, unrolled=self.unrolled
        )

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        with self.k.weak(self.nb, "b") as self.b:
            if self.unrolled:
                bad = self.tiles.write(self._prefetch_named, self._write_named)
            elif self.uplo == "L":
                bad = self.tiles.write(self._read_rows, self._write_rows)
            else:
                self._read_upper()
                self._prefetch(0, self.n)
                bad = self.tiles.write()
                self._write_upper()
            self.k.store(self.info, self.b, bad)
        return self.k.finish()

    # the matrix in and out

    def _prefetch(self, row: Operand, rows: int) -> None:
        """Ask for rows of the matrix that this lane factors next."""
        if self.ahead:
            following = self.b + self.ahead
            self.k.prefetch(self.a, (following, row, 0), rows * self.n)

    def _prefetch_named(self, i: Operand) -> None:
        """Ask for the part of a row of tiles, or for all at once if lines are shared.

        All at once, a processor waits for some of them.
        """
        if TILE * self.n * self.dtype.itemsize % CACHE_LINE_BYTES == 0:
            self._prefetch(TILE * i, min(TILE, self.n - TILE * cast("int", i)))
        elif i == 0:
            self._prefetch(0, self.n)

    # small orders, written out

    def _read_named(self, row: int, column: int) -> None:
        """Read the run that an element of the lower triangle stands in.

        Reading late keeps few values in registers at a time: at order 8 twice as fast
        as reading all first.
        """
        wanted = (row, column) if self.uplo == "L" else (column, row)
        places = next(run for run in self._runs(self.run) if wanted in run)
        cells = cast("_Named", self.w).cells
        for (i, j), x in zip(places, self._loaded(places), strict=True):
            if self.uplo == "L" and j <= i:
                cells[i, j] = x
            elif self.uplo == "U" and i <= j:
                cells[j, i] = conj(x)

    def _write_named(self, i: Operand) -> None:
        """Write the runs that are complete with a row of tiles.

        Of the upper triangle that is none before the last.
        """
        rows = min(TILE * (cast("int", i) + 1), self.n)
        if self.uplo == "U" and rows < self.n:
            return
        cells = cast("_Named", self.w).cells
        zero = Const(0, self.dtype)
        while self.unwritten and self.unwritten[0][-1][0] < rows:
            places = self.unwritten.pop(0)
            if self.uplo == "L":
                values = [cells[i, j] if j <= i else zero for i, j in places]
            else:
                values = [conj(cells[j, i]) if i <= j else zero for i, j in places]
            self._store(places, values)

    def _runs(self, length: int) -> Iterator[list[tuple[int, int]]]:
        """Yield the places of a whole matrix in runs of consecutive elements."""
        for first in range(0, self.n**2, length):
            stop = min(first + length, self.n**2)
            yield [divmod(e, self.n) for e in range(first, stop)]

    # the lower triangle, a row of tiles at a time

    def _read_rows(self, i: Operand) -> None:
        """Read rows of the triangle in runs, to the end of the diagonal tile."""
        self._prefetch(TILE * i, TILE)
        per_row, rest = divmod(self.n, self.run)
        past = minimum(self._runs_to_diagonal(i, self.run), per_row)
        for r in self.tiles.rows(i):
            for c in self.tiles.loop(0, past):
                self._read_run(i, r, self._columns(c, self.run))
            if rest:
                self._read_run(i, r, range(self.n - rest, self.n))

    def _runs_to_diagonal(self, i: Operand, length: int) -> Expr:
        """Return how many runs of a row hold the columns of its diagonal tile."""
        return (as_expr(TILE * i, INDEX) + (TILE - 1)) // length + 1

    def _read_run(self, i: Operand, r: Operand, columns: Sequence[Operand]) -> None:
        values = self._loaded([(TILE * i + r, j) for j in columns])
        for j, x in zip(columns, values, strict=True):
            self.w[i, r, j] = x

    def _write_rows(self, i: Operand) -> None:
        """Write rows of the factor in runs, zeros above the diagonal.

        Only runs that meet the diagonal have to choose element by element.
        """
        per_row, rest = divmod(self.n, self.line)
        inside = as_expr(TILE * i, INDEX) // self.line
        edge = self.k.let(minimum(inside, per_row), "edge")
        past = self._runs_to_diagonal(i, self.line)
        past = self.k.let(minimum(past, per_row), "past")
        for r in self.tiles.rows(i):
            for c in self.tiles.loop(0, edge):
                self._write_run(i, r, self._columns(c, self.line), self._inside)
            for c in self.tiles.loop(edge, past):
                self._write_run(i, r, self._columns(c, self.line), self._either)
            for c in self.tiles.loop(past, per_row):
                self._write_run(i, r, self._columns(c, self.line), self._above)
            if rest:
                self._write_run(i, r, range(self.n - rest, self.n), self._either)

    def _write_run(
        self,
        i: Operand,
        r: Operand,
        columns: Sequence[Operand],
        value: Callable[[Operand, Operand, Operand], Expr],
    ) -> None:
        values = [value(i, r, j) for j in columns]
        self._store([(TILE * i + r, j) for j in columns], values)

    def _inside(self, i: Operand, r: Operand, column: Operand) -> Expr:
        return self.w[i, r, column]

    def _above(self, _i: Operand, _r: Operand, _column: Operand) -> Expr:
        return Const(0, self.dtype)

    def _either(self, i: Operand, r: Operand, column: Operand) -> Expr:
        panels = cast("_Panels", self.w).w
        return panels.get(i, column, r, gate=as_expr(column, INDEX) <= TILE * i + r)

    # the upper triangle, before and after

    def _read_upper(self) -> None:
        """Read in runs; by conjugation the upper triangle becomes the lower one."""
        per_row, rest = divmod(self.n, self.run)
        for i in self.tiles.loop(0, self.n):
            for c in self.tiles.loop(as_expr(i, INDEX) // self.run, per_row):
                self._read_upper_run(i, self._columns(c, self.run))
            if rest:
                self._read_upper_run(i, range(self.n - rest, self.n))

    def _read_upper_run(self, i: Operand, columns: Sequence[Operand]) -> None:
        values = self._loaded([(i, j) for j in columns])
        for j, x in zip(columns, values, strict=True):
            row = as_expr(j, INDEX)
            self.w[row // TILE, row % TILE, i] = conj(x)

    def _write_upper(self) -> None:
        """Write the factor in runs, zeros below the diagonal."""
        per_row, rest = divmod(self.n, self.line)
        for i in self.tiles.loop(0, self.n):
            for c in self.tiles.loop(0, per_row):
                self._write_upper_run(i, self._columns(c, self.line))
            if rest:
                self._write_upper_run(i, range(self.n - rest, self.n))

    def _write_upper_run(self, i: Operand, columns: Sequence[Operand]) -> None:
        values = []
        for j in columns:
            row = as_expr(j, INDEX)
            values.append(conj(self._either(row // TILE, row % TILE, i)))
        self._store([(i, j) for j in columns], values)

    # runs

    def _columns(self, c: Operand, length: int) -> list[Operand]:
        """Return the columns of a row's run `c`."""
        return [c * length + e for e in range(length)]

    def _loaded(self, places: Sequence[tuple[Operand, Operand]]) -> list[Expr]:
        return [self.k.let(self.a[self.b, i, j], "x") for i, j in places]

    def _store(
        self, places: Sequence[tuple[Operand, Operand]], values: Sequence[Expr]
    ) -> None:
        named = [self.k.let(value, "y") for value in values]
        for (i, j), y in zip(places, named, strict=True):
            self.l[self.b, i, j] = y
