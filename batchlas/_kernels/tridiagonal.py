"""Householder's reduction of one Hermitian matrix to a real tridiagonal one.

The matrix is the lower triangle of a flat register array, row by row. Rows are reduced
from the last one up, so that every loop runs along rows. The reflectors overwrite their
rows, and the orthogonal matrix then overwrites the reflectors, row by row as well.

Rows are taken four at a time where they do the same: that is as many sums as keep the
multiply-add units busy, and each element of the other operand is loaded once for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.functions import (
    abs_squared,
    absolute,
    conj,
    fma,
    imag,
    make_complex,
    real,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Operand, as_expr
from batchlas._kernels.scaling import RANGES
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batchlas._kernels.build import KernelBuilder, Ref

BLOCK = 4
"""Rows that are taken together."""


def multiply_add(x: Expr, y: Expr, z: Expr) -> Expr:
    """Return x*y + z, for complex numbers by four multiply-adds of reals."""
    if not x.dtype.is_complex:
        return fma(x, y, z)
    a, b, c, d = real(x), imag(x), real(y), imag(y)
    return make_complex(fma(-b, d, fma(a, c, real(z))), fma(b, c, fma(a, d, imag(z))))


def scaled(x: Expr, factor: Operand) -> Expr:
    """Return x times a real number."""
    if not x.dtype.is_complex:
        return x * factor
    return make_complex(real(x) * factor, imag(x) * factor)


def multiply_add_real(c: Expr, x: Expr, y: Expr) -> Expr:
    """Return c x + y for a real c."""
    if not x.dtype.is_complex:
        return fma(c, x, y)
    return make_complex(fma(c, real(x), real(y)), fma(c, imag(x), imag(y)))


class Matrix:
    """A square matrix in a flat register array, rows `step` apart."""

    def __init__(self, k: KernelBuilder, cells: Ref, n: Expr, step: Expr) -> None:
        self.k, self.cells, self.n, self.step = k, cells, n, step
        self.dtype = cells.buffer.dtype

    def __getitem__(self, index: tuple[Operand, Operand]) -> Expr:
        return self.cells[self._flat(index)]

    def __setitem__(self, index: tuple[Operand, Operand], value: Expr) -> None:
        self.cells[self._flat(index)] = value

    def _flat(self, index: tuple[Operand, Operand]) -> Expr:
        row, column = (as_expr(i, INDEX) for i in index)
        return fold(row * self.step + column)

    def loop(self, start: Operand, stop: Operand) -> Iterator[Expr]:
        """Yield one axis for the numbers from start up to stop."""
        first, last = as_expr(start, INDEX), as_expr(stop, INDEX)
        with self.k.serial(fold(last - first), "t") as axis:
            yield fold(axis + first)

    def down(self, start: Operand, stop: Operand) -> Iterator[Expr]:
        """Yield one axis for the numbers below start down to stop."""
        first, last = as_expr(start, INDEX), as_expr(stop, INDEX)
        with self.k.serial(fold(first - last), "t") as axis:
            yield fold((first - 1) - axis)

    def blocks(self, stop: Operand) -> Iterator[tuple[Expr, int]]:
        """Yield the first of every block below stop and its size, then single ones."""
        end = as_expr(stop, INDEX)
        for t in self.loop(0, end // BLOCK):
            yield fold(t * BLOCK), BLOCK
        rest = self.k.let(end // BLOCK * BLOCK, "rest")
        for t in self.loop(rest, end):
            yield t, 1

    def sum(self, dtype: DType | None = None) -> Ref:
        """Return a new register that holds zero."""
        return self.k.variable(Const(0, dtype or self.dtype), "sum")


class Reduction:
    """Writes the statements of the reduction of a matrix in place.

    Afterwards ``d`` is the diagonal and ``e[i]`` couples i and i+1. With `vectors` the
    matrix then is orthogonal and its columns are those that the tridiagonal matrix
    stands in.
    """

    def __init__(self, a: Matrix, capacity: int, *, vectors: bool) -> None:
        self.a, self.k, self.n, self.vectors = a, a.k, a.n, vectors
        self.dtype, self.real = a.dtype, a.dtype.real
        self.known = RANGES[self.real]
        k = self.k
        self.d = k.register("d", self.real, (capacity,))
        self.e = k.register("e", self.real, (capacity,))
        self.p = k.register("p", self.dtype, (capacity,))
        if vectors:
            self.inverse = k.register("inverse", self.real, (capacity,))
        if vectors and self.dtype.is_complex:
            self.phase = k.register("phase", self.dtype, (capacity,))

    def write(self) -> None:
        """Write all of it."""
        a, n = self.a, self.n
        for i in a.loop(0, n):
            self.e[i] = Const(0, self.real)
            if self.vectors:
                self.inverse[i] = Const(0, self.real)
        for i in a.down(n, 1):
            self._reduce(i)
        for i in a.loop(0, n):
            self.d[i] = real(a[i, i])
        if self.vectors:
            self._form()
            self._turn()

    # the reduction

    def _reduce(self, i: Expr) -> None:
        """Reduce row i to its last element before the diagonal."""
        inverse = self._reflector(i)
        self._multiply(i)
        self._project(i, inverse)
        self._update(i)
        if self.vectors:
            self.inverse[i] = inverse

    def _reflector(self, i: Expr) -> Expr:
        """Make row i the vector u of I - u u^H / h; return 1/h, zero for none.

        The vector is brought to size 1 first, so that no product leaves the range.
        """
        k, a = self.k, self.a
        rest = a.sum(self.real)
        for j in a.loop(0, i - 1):
            rest.set(rest[()] + abs_squared(a[i, j]))
        last, modulus = self._last(i)
        none = k.let(rest[()] <= self.known.tiny, "none")
        norm = k.let(sqrt(fma(modulus, modulus, rest[()])), "norm")
        shrink = k.let(where(none, 0, 1 / where(none, 1, norm)), "shrink")
        for j in a.loop(0, i - 1):
            a[i, j] = scaled(conj(a[i, j]), shrink)
        turn, sign, kept = self._direction(last, modulus)
        a[i, i - 1] = multiply_add_real(shrink, last, turn)
        self.e[i - 1] = k.let(where(none, kept, -sign * norm), "off")
        if self.dtype.is_complex and self.vectors:
            self.phase[i] = conj(turn)
        return k.let(where(none, 0, 1 / fma(modulus, shrink, 1)), "inverse")

    def _last(self, i: Expr) -> tuple[Expr, Expr]:
        """Return the last element before the diagonal of row i and its modulus.

        A complex one that is nothing is made zero, for it has no phase.
        """
        k = self.k
        last = k.let(conj(self.a[i, i - 1]), "last")
        if not self.dtype.is_complex:
            return last, k.let(absolute(last), "modulus")
        size = k.let(abs_squared(last), "size")
        nothing = k.let(size <= self.known.tiny, "nothing")
        modulus = k.let(where(nothing, 0, sqrt(size)), "modulus")
        return k.let(where(nothing, Const(0, self.dtype), last), "last"), modulus

    def _direction(self, last: Expr, modulus: Expr) -> tuple[Expr, Expr, Expr]:
        """Return an element's phase, its sign if real, else 1, and what e then is.

        A complex element's phase is taken out of the off-diagonal, a sign stays in it.
        """
        k = self.k
        if not self.dtype.is_complex:
            turn = k.let(where(last < 0, Const(-1, self.real), 1), "turn")
            return turn, turn, last
        nothing = k.let(modulus.eq(0), "nothing")
        r = k.let(1 / where(nothing, 1, modulus), "r")
        re, im = where(nothing, 1, real(last) * r), imag(last) * r
        return k.let(make_complex(re, im), "turn"), Const(1, self.real), modulus

    def _multiply(self, i: Expr) -> None:
        """Set p = A u: each row is a sum for its own p and a part of those before."""
        k, a = self.k, self.a
        for j, count in a.blocks(i):
            rows = range(count)
            u = [k.let(a[i, j + r], "u") for r in rows]
            sums = [a.sum() for _ in rows]
            for c in a.loop(0, j):
                uc, pc = k.let(a[i, c], "uc"), self.p[c]
                for r in rows:
                    x = k.let(a[j + r, c], "x")
                    sums[r].set(multiply_add(x, uc, sums[r][()]))
                    pc = k.let(multiply_add(conj(x), u[r], pc), "pc")
                self.p[c] = pc
            for r in rows:
                for s in range(r):
                    x = k.let(a[j + r, j + s], "x")
                    sums[r].set(multiply_add(x, u[s], sums[r][()]))
                    sums[s].set(multiply_add(conj(x), u[r], sums[s][()]))
                diagonal = k.let(real(a[j + r, j + r]), "diagonal")
                sums[r].set(sums[r][()] + scaled(u[r], diagonal))
            for r in rows:
                self.p[j + r] = sums[r][()]

    def _project(self, i: Expr, inverse: Expr) -> None:
        """Make p the w of A - u w^H - w u^H."""
        k, a = self.k, self.a
        dot = a.sum(self.real)
        for j in a.loop(0, i):
            u, p = k.let(a[i, j], "u"), k.let(self.p[j], "p")
            part = fma(real(u), real(p), dot[()])
            if self.dtype.is_complex:
                part = fma(imag(u), imag(p), part)
            dot.set(part)
        half = k.let(dot[()] * inverse * inverse * 0.5, "half")
        for j in a.loop(0, i):
            u, p = k.let(a[i, j], "u"), k.let(self.p[j], "p")
            self.p[j] = scaled(p, inverse) - scaled(u, half)

    def _update(self, i: Expr) -> None:
        """Subtract u w^H + w u^H from the rows above."""
        k, a = self.k, self.a
        for j, count in a.blocks(i):
            rows = range(count)
            u = [k.let(-a[i, j + r], "u") for r in rows]
            w = [k.let(-self.p[j + r], "w") for r in rows]
            for c in a.loop(0, j):
                uc, wc = k.let(conj(a[i, c]), "uc"), k.let(conj(self.p[c]), "wc")
                for r in rows:
                    x = multiply_add(w[r], uc, a[j + r, c])
                    a[j + r, c] = multiply_add(u[r], wc, x)
            for r in rows:
                for s in range(r + 1):
                    x = multiply_add(w[r], -conj(u[s]), a[j + r, j + s])
                    a[j + r, j + s] = multiply_add(u[r], -conj(w[s]), x)

    # the orthogonal matrix

    def _form(self) -> None:
        """Form the orthogonal matrix, by two reflectors at a time."""
        a, n = self.a, self.n
        a[0, 0] = Const(1, self.dtype)
        odd = self.k.let(n % 2, "odd")
        for t in a.loop(0, n // 2):
            self._form_two(fold(odd + t * 2))

    def _form_two(self, i: Expr) -> None:
        """Multiply the leading block by reflectors i and i + 1, and add their rows.

        Both are applied in one pass, so that each element is loaded and stored once.
        """
        k, a, u = self.k, self.a, self.p
        next_ = fold(i + 1)
        one, two = k.let(self.inverse[i], "one"), k.let(self.inverse[next_], "two")
        last = k.let(a[next_, i], "last")
        cross = a.sum()
        for j in a.loop(0, i):
            u[j] = a[i, j]
            part = multiply_add(conj(a[next_, j]), u[j], cross[()])
            cross.set(part)
        for c, count in a.blocks(i):
            columns = [k.let(c + s, "column") for s in range(count)]
            g, h = self._products(i, columns)
            g = [k.let(scaled(-x, one), "g") for x in g]
            h = [multiply_add(cross[()], x, y) for x, y in zip(g, h, strict=True)]
            h = [k.let(scaled(-x, two), "h") for x in h]
            for j in a.loop(0, i):
                x, y = k.let(u[j], "u"), k.let(a[next_, j], "u")
                for s, at in enumerate(columns):
                    a[j, at] = multiply_add(y, h[s], multiply_add(x, g[s], a[j, at]))
            for s, at in enumerate(columns):
                a[i, at] = last * h[s]
        self._add_rows(i, k.let(scaled(-conj(last), two), "factor"))

    def _products(
        self, i: Expr, columns: Sequence[Expr]
    ) -> tuple[list[Expr], list[Expr]]:
        """Return the products of both reflectors' vectors and columns of the block."""
        k, a = self.k, self.a
        first, second = ([a.sum() for _ in columns] for _ in range(2))
        for j in a.loop(0, i):
            x = k.let(conj(self.p[j]), "u")
            y = k.let(conj(a[i + 1, j]), "u")
            for s, at in enumerate(columns):
                z = k.let(a[j, at], "z")
                first[s].set(multiply_add(x, z, first[s][()]))
                second[s].set(multiply_add(y, z, second[s][()]))
        return [x[()] for x in first], [x[()] for x in second]

    def _add_rows(self, i: Expr, factor: Expr) -> None:
        """Make column i that of reflector i + 1; row and column i + 1 of the unit."""
        k, a = self.k, self.a
        next_ = fold(i + 1)
        one, zero = Const(1, self.dtype), Const(0, self.dtype)
        for j in a.loop(0, i):
            a[j, i] = a[next_, j] * factor
        a[i, i] = multiply_add(k.let(a[next_, i], "last"), factor, one)
        for j in a.loop(0, next_):
            a[next_, j] = zero
            a[j, next_] = zero
        a[next_, next_] = one

    def _turn(self) -> None:
        """Multiply the columns by the phases that made the off-diagonal real."""
        if not self.dtype.is_complex:
            return
        k, a = self.k, self.a
        phase = k.variable(Const(1, self.dtype), "turn")
        for i in a.loop(1, self.n):
            phase.set(phase[()] * self.phase[i])
            for j in a.loop(0, self.n):
                a[j, i] = a[j, i] * phase[()]
