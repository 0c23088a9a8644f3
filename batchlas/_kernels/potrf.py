"""Cholesky of one matrix per lane: the kernel behind the family ``lane``.

A thread holds its matrix in registers and factors it by 4x4 tiles (`potrf_tiles`),
which keeps both multiply-add units of a core busy.

The schedule makes the batch axis the lanes of vectors, so a vector register holds one
element of several matrices. Matrices are read and written in runs of consecutive
elements, one run per vector, which the OpenCL renderer prints as a transposed tile.

Up to order 8 all loops are written out and every element has a name; above, the matrix
is an array in private memory, since unrolled code would take seconds to compile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import conj, minimum
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Kernel, Operand, as_expr
from batchlas._kernels.limits import padded
from batchlas._kernels.potrf_tiles import UNROLLED, Factorisation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from batchlas._kernels.build import Ref


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

    def __init__(self, read: Callable[[Operand, Operand], None]) -> None:
        self.cells: dict[tuple[Operand, Operand], Expr] = {}
        self._read = read

    def __getitem__(self, index: tuple[Operand, Operand]) -> Expr:
        if index not in self.cells:
            self._read(*index)
        return self.cells[index]

    def __setitem__(self, index: tuple[Operand, Operand], value: Expr) -> None:
        self.cells[index] = value


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
        self.n, self.dtype, self.uplo, self.run = n, dtype, uplo, run
        self.ahead = ahead
        k = self.k = KernelBuilder(f"potrf_{uplo}{n}_{dtype.value}")
        nb = self.nb = k.scalar("nb", multiple_of=multiple_of)
        self.a = k.array("a", dtype, (nb, n, n))
        self.l = k.array("l", dtype, (nb, n, n), streams=True)
        self.info = k.array("info", DType.INT32, (nb,))
        self.unrolled = n <= UNROLLED
        shape = (padded(n), padded(n))
        self.w: _Named | Ref = (
            _Named(self._read_named) if self.unrolled else k.register("w", dtype, shape)
        )
        self.unwritten = list(self._runs()) if self.unrolled else []
        self.tiles = Factorisation(k, n, dtype, self.w, counts=False)

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        with self.k.weak(self.nb, "b") as self.b:
            if self.unrolled:
                self._prefetch()
                bad = self.tiles.write(self._write_named)
            else:
                self._read()
                self._prefetch()
                bad = self.tiles.write()
                self._write()
            self.k.store(self.info, self.b, bad)
        return self.k.finish()

    # the matrix in and out

    def _prefetch(self) -> None:
        """Ask for the matrix that this lane factors next while this one is factored."""
        if self.ahead:
            following = self.b + self.ahead
            self.k.prefetch(self.a, (following, 0, 0), self.n**2)

    def _read_named(self, row: Operand, column: Operand) -> None:
        """Read the run that an element of the lower triangle stands in.

        Reading late keeps few values in registers at a time: at order 8 twice as fast
        as reading all first.
        """
        wanted = (row, column) if self.uplo == "L" else (column, row)
        self._read_run(next(run for run in self._runs() if wanted in run))

    def _write_named(self, rows: int) -> None:
        """Write the runs that are complete with the first `rows` rows."""
        while self.unwritten and self.unwritten[0][-1][0] < rows:
            self._write_run(self.unwritten.pop(0))

    def _read(self) -> None:
        """Read the triangle in runs; the upper one becomes the lower by conjugation."""
        per_row, rest = divmod(self.n, self.run)
        for i in self.tiles.loop(0, self.n):
            edge = as_expr(i, INDEX) // self.run  # the run that meets the diagonal
            first = edge if self.uplo == "U" else 0
            last = per_row if self.uplo == "U" else minimum(edge + 1, per_row)
            for c in self.tiles.loop(first, last):
                self._read_run([(i, c * self.run + e) for e in range(self.run)])
            if rest:
                self._read_run([(i, j) for j in range(self.n - rest, self.n)])

    def _runs(self) -> Iterator[list[tuple[int, int]]]:
        """Yield the places of a whole matrix in runs of consecutive elements."""
        for first in range(0, self.n**2, self.run):
            stop = min(first + self.run, self.n**2)
            yield [divmod(e, self.n) for e in range(first, stop)]

    def _is_above(self, row: Operand, column: Operand) -> bool:
        return isinstance(row, int) and isinstance(column, int) and row < column

    def _is_read(self, i: int, j: int) -> bool:
        return j <= i if self.uplo == "L" else i <= j

    def _read_run(self, places: Sequence[tuple[Operand, Operand]]) -> None:
        values = [self.k.let(self.a[self.b, i, j], "x") for i, j in places]
        for (i, j), x in zip(places, values, strict=True):
            if isinstance(i, int) and isinstance(j, int) and not self._is_read(i, j):
                continue
            if self.uplo == "L":
                self.w[i, j] = x
            else:
                self.w[j, i] = conj(x)

    def _write(self) -> None:
        """Write the factor in runs, zeros in the other triangle."""
        per_row, rest = divmod(self.n, self.run)
        for i in self.tiles.loop(0, self.n):
            for c in self.tiles.loop(0, per_row):
                self._write_run([(i, c * self.run + e) for e in range(self.run)])
            if rest:
                self._write_run([(i, j) for j in range(self.n - rest, self.n)])

    def _write_run(self, places: Sequence[tuple[Operand, Operand]]) -> None:
        values = [self.k.let(self._result(i, j), "y") for i, j in places]
        for (i, j), y in zip(places, values, strict=True):
            self.l[self.b, i, j] = y

    def _result(self, i: Operand, j: Operand) -> Expr:
        """Return an element of the factor, zero in the other triangle."""
        row, column = (i, j) if self.uplo == "L" else (j, i)
        if isinstance(self.w, _Named):
            zero = Const(0, self.dtype)
            kept = zero if self._is_above(row, column) else self.w[row, column]
        else:
            inside = as_expr(column, INDEX) <= as_expr(row, INDEX)
            kept = self.w.get(row, column, gate=inside)
        return kept if self.uplo == "L" else conj(kept)
