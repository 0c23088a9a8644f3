"""Cholesky of one matrix per thread, for targets without vector types.

Consecutive threads of a work-group read and write consecutive addresses of the arrays;
between the barriers each thread factors its own matrix as `potrf` does, by the same
tiles, in work-group memory with the matrix index innermost: element e of matrix l is
``w[e, l]``. That is what a CPU compiler turns into vectors, and what a GPU coalesces.

Up to order 8 all loops are written out. There the copy in keeps the array's order, each
thread collects its elements into registers, and only the factor is interleaved:
scattered stores, which vector loads then wait for, cost twice as much. Above, ``w``
holds the packed lower triangle in whole tiles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import conj, minimum, where
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Kernel, Operand, as_expr
from batchlas._kernels.limits import TILE, padded
from batchlas._kernels.potrf_tiles import Factorisation
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from batchlas._kernels.build import Ref

UNROLLED = 8
"""Largest order whose loops are written out."""


def potrf(n: int, dtype: DType, uplo: str, threads: int) -> Kernel:
    """Return the kernel, unscheduled.

    Parameters
    ----------
    n : int
        Order, at least 1.
    dtype : DType
        Real or complex floating point.
    uplo : {"L", "U"}
        Triangle that is read and written; the other one is written as zeros.
    threads : int
        Threads of a work-group, and matrices that it factors.

    Returns
    -------
    Kernel
        Arguments ``nb, a, l, info`` as `potrf` has them, the arrays flat, the batch at
        least `threads`. The last group ends with the batch: where `threads` does not
        divide the batch, it factors some matrices for the second time, with the same
        results.
    """
    return _Interleaved(n, dtype, uplo, threads).kernel()


def local_bytes(n: int, itemsize: int, threads: int) -> int:
    """Return the work-group memory that a kernel needs, in bytes."""
    return _cells(n) * itemsize * threads


def _cells(n: int) -> int:
    """Return the elements that are kept of a matrix."""
    return n * n if n <= UNROLLED else padded(n) * (padded(n) + 1) // 2


class _Packed:
    """The lower triangle of a thread's matrix, row by row."""

    def __init__(self, w: Ref, thread: Expr) -> None:
        self.w, self.thread = w, thread

    def __getitem__(self, index: tuple[Operand, Operand, Operand]) -> Expr:
        i, r, column = index
        return self.w[_packed(TILE * i + r, column), self.thread]

    def __setitem__(self, index: tuple[Operand, Operand, Operand], v: Expr) -> None:
        i, r, column = index
        self.w[_packed(TILE * i + r, column), self.thread] = v


def _packed(row: Operand, column: Operand) -> Expr:
    i = as_expr(row, INDEX)
    return i * (i + 1) // 2 + as_expr(column, INDEX)


class _Interleaved:
    """The parts of the kernel, in the order in which they are written."""

    def __init__(self, n: int, dtype: DType, uplo: str, threads: int) -> None:
        self.n, self.dtype, self.uplo, self.threads = n, dtype, uplo, threads
        k = self.k = KernelBuilder(f"potrf_{uplo}{n}_{dtype.value}_by{threads}")
        nb = self.nb = k.scalar("nb")
        # a group's part of an array, by its first matrix and the element from there
        part, strides = (nb, threads * n * n), (n * n, 1)
        self.a = k.array("a", dtype, part, strides=strides)
        self.l = k.array("l", dtype, part, strides=strides)
        self.info = k.array("info", DType.INT32, (nb,))
        # The copy in of small orders keeps the array's order, so it has one subscript.
        shape = (_cells(n) * threads,) if n <= UNROLLED else (_cells(n), threads)
        self.w = k.local("w", dtype, shape)

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        k, threads = self.k, self.threads
        groups = (self.nb + (threads - 1)) // threads
        with k.weak(groups, "g") as g, k.threads(threads, "t") as thread:
            last = self.nb - threads
            first = k.let(minimum(g * threads, last), "first")
            write = self._small if self.n <= UNROLLED else self._large
            bad = write(first, thread)
            k.store(self.info, first + thread, bad)
        return k.finish()

    # small orders: the matrix in registers

    def _small(self, first: Expr, thread: Expr) -> Expr:
        n, k, threads = self.n, self.k, self.threads
        with k.weak(n * n, "e") as e:
            flat = e * threads + thread
            self.w[flat] = self.a[first, flat]
        k.barrier()
        w: dict[tuple[Operand, Operand, Operand], Expr] = {}
        for i in range(n):
            for j in range(i + 1):
                row, column = (i, j) if self.uplo == "L" else (j, i)
                x = k.let(self.w[thread * n**2 + (row * n + column)], "x")
                w[i // TILE, i % TILE, j] = self._turned(x)
        k.barrier()
        tiles = Factorisation(k, n, self.dtype, w, counts=True, unrolled=True)
        bad = tiles.write()
        for i in range(n):
            for j in range(n):
                row, column = (i, j) if self.uplo == "L" else (j, i)
                zero = Const(0, self.dtype)
                cell = row // TILE, row % TILE, column
                y = self._turned(w[cell]) if column <= row else zero
                self.w[(i * n + j) * threads + thread] = y
        k.barrier()
        self._small_out(first, thread)
        return bad

    def _small_out(self, first: Expr, thread: Expr) -> None:
        """Copy out, stepping through the interleaved elements without divisions.

        The thread's next element is `threads` further in the array, which is so many
        whole matrices and a rest; a vector unit has no integer division.
        """
        k, threads, size = self.k, self.threads, self.n**2
        whole, rest = divmod(threads, size)
        element = k.register("element", INDEX)
        place = k.register("place", INDEX)
        matrix = k.let(self._matrix_of(thread), "m")
        element.set(thread - matrix * size)
        place.set(element[()] * threads + matrix)
        with k.serial(size, "x") as x:
            self.l[first, x * threads + thread] = self.w[place[()]]
            place.set(place[()] + (rest * threads + whole))
            if rest:
                element.set(element[()] + rest)
                wraps = k.let(element[()] >= size, "wraps")
                back = size * threads - 1
                place.set(where(wraps, place[()] - back, place[()]))
                element.set(where(wraps, element[()] - size, element[()]))

    def _matrix_of(self, thread: Expr) -> Expr:
        """Return ``thread // size``; by a shift, or counted, never by a division.

        With a division the whole kernel took a tenth longer.
        """
        size = self.n**2
        if size.bit_count() == 1:
            return thread // size
        matrix = as_expr(0, INDEX)
        for start in range(size, self.threads, size):
            matrix = matrix + where(thread >= start, Const(1, INDEX), 0)
        return fold(matrix)

    def _turned(self, x: Expr) -> Expr:
        return x if self.uplo == "L" else conj(x)

    # large orders: the matrix in work-group memory

    def _large(self, first: Expr, thread: Expr) -> Expr:
        k, threads = self.k, self.threads
        with k.weak(self.n**2, "e") as e:
            flat = e * threads + thread
            row, column, matrix = self._place(flat)
            with k.where(column <= row):
                value = self._turned(self.a[first, flat])
                self.w[_packed(row, column), matrix] = value
        k.barrier()
        w = _Packed(self.w, thread)
        n, dtype = self.n, self.dtype
        tiles = Factorisation(k, n, dtype, w, counts=True, unrolled=False)
        bad = tiles.write()
        k.barrier()
        with k.weak(self.n**2, "x") as x:
            flat = x * threads + thread
            row, column, matrix = self._place(flat)
            cell = _packed(row, column), matrix
            self.l[first, flat] = self._turned(self.w.get(*cell, gate=column <= row))
        return bad

    def _place(self, flat: Expr) -> tuple[Expr, Expr, Expr]:
        """Return row, column and matrix of an element, its triangle turned to lower."""
        k, n = self.k, self.n
        matrix = k.let(flat // n**2, "m")
        element = k.let(flat - matrix * n**2, "c")
        row = k.let(element // n, "r")
        column = k.let(element - row * n, "s")
        return (row, column, matrix) if self.uplo == "L" else (column, row, matrix)
