"""QR factorisation with column pivoting, one matrix per lane, and its Q by rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.functions import (
    abs_squared,
    any_lane,
    cast,
    conj,
    fma,
    make_complex,
    where,
)
from batchlas._kernels.ir import Const, Expr
from batchlas._kernels.reflectors import form, in_column, reflect, reflectors, zeros
from batchlas._kernels.scratch import blocks, loop

if TYPE_CHECKING:
    from batchlas._kernels.scratch import Matrix, Scratch


class Elimination:
    """Reduces the m x n `x` to R, m >= n, and forms the adjoint of Q.

    Columns are exchanged so that the longest comes first, in each lane its own; R is
    that of the matrix with its columns exchanged.
    """

    def __init__(self, scratch: Scratch, x: Matrix, m: Expr, n: Expr) -> None:
        self.x, self.m, self.n, self.k = x, m, n, scratch.k
        self.real = x.dtype.real
        self.reflectors = reflectors(scratch, x, in_column, m, n)
        self.diagonal = scratch.vector(n, self.real)
        self.length = scratch.vector(n, self.real)
        self.place = scratch.vector(n, self.real)

    def write(self) -> None:
        """Write the factorisation; reflectors stay below the diagonal."""
        k = self.k
        for j in loop(k, 0, self.n, "j"):
            self.place[j] = cast(j, self.real)
        for c in loop(k, 0, self.n, "c"):
            self._pivot(c)
            beta, tau = reflect(self.reflectors, c, self.m)
            self._apply(c, -conj(tau))
            self.diagonal[c] = beta

    def keep_triangle(self) -> None:
        """Make the first n rows those of R: its diagonal, and zeros below."""
        for i in loop(self.k, 0, self.n):
            for j in loop(self.k, 0, i, "j"):
                self.x[i, j] = Const(0, self.x.dtype)
            beta = self.diagonal[i]
            self.x[i, i] = make_complex(beta, 0) if self.x.dtype.is_complex else beta

    def restore_columns(self) -> None:
        """Undo the exchange of columns, in the first n rows."""
        for j in loop(self.k, 0, self.n, "j"):
            here = self.k.let(cast(j, self.real), "here")
            for other in loop(self.k, j + 1, self.n, "l"):
                found = self.k.let(self.place[other].eq(here), "found")
                self._exchange(j, other, self.n, found)

    def _pivot(self, c: Expr) -> None:
        """Bring the longest of the remaining columns to the front."""
        k = self.k
        for js in blocks(k, c, self.n):
            self._measure(c, js)
        for j in loop(k, c + 1, self.n, "j"):
            one, other = k.let(self.length[c], "l"), k.let(self.length[j], "l")
            longer = k.let(one < other, "longer")
            self._exchange(c, j, self.m, longer)
            self.length[c] = where(longer, other, one)
            self.length[j] = where(longer, one, other)

    def _measure(self, c: Expr, js: list[Expr]) -> None:
        """Compute the squared norms of columns from row c on."""
        sums = zeros(self.k, "length", self.real, len(js))
        for i in loop(self.k, c, self.m):
            for sum_, j in zip(sums, js, strict=True):
                x = self.k.let(self.x[i, j], "x")
                sum_.set(sum_[()] + abs_squared(x))
        for sum_, j in zip(sums, js, strict=True):
            self.length[j] = sum_[()]

    def _exchange(self, one: Expr, other: Expr, rows: Expr, swap: Expr) -> None:
        """Exchange two columns in the lanes that ask for it."""
        k, x = self.k, self.x
        with k.guard(any_lane(swap)):
            for i in loop(k, 0, rows):
                a, b = k.let(x[i, one], "xa"), k.let(x[i, other], "xb")
                x[i, one] = where(swap, b, a)
                x[i, other] = where(swap, a, b)
            a, b = k.let(self.place[one], "pa"), k.let(self.place[other], "pb")
            self.place[one] = where(swap, b, a)
            self.place[other] = where(swap, a, b)

    def _apply(self, c: Expr, tau: Expr) -> None:
        """Apply the adjoint of reflector c to the columns behind."""
        k, x, vector = self.k, self.x, self.reflectors.v
        for js in blocks(k, c + 1, self.n):
            sums = zeros(k, "w", x.dtype, len(js))
            for i in loop(k, c, self.m):
                v = k.let(conj(vector[i]), "v")
                for sum_, j in zip(sums, js, strict=True):
                    sum_.set(fma(v, x[i, j], sum_[()]))
            ws = [k.let(tau * sum_[()], "w") for sum_ in sums]
            for i in loop(k, c, self.m):
                v = k.let(vector[i], "v")
                for w, j in zip(ws, js, strict=True):
                    x[i, j] = fma(v, w, x[i, j])

    def form(self, q: Matrix, rows: Expr) -> None:
        """Make the rows of `q` the first rows of the adjoint of Q."""
        form(self.reflectors, self.n, q, rows, self.m)
