"""Reduction to real bidiagonal form by Householder reflectors, one matrix per lane.

LAPACK's gebrd and orgbr, unblocked: a lane's matrix is small, and vectors fill the
multiply-add units already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.functions import conj, fma
from batchlas._kernels.reflectors import (
    form_in_pairs,
    in_column,
    in_row,
    reflect,
    reflectors,
    zeros,
)
from batchlas._kernels.scratch import blocks, loop

if TYPE_CHECKING:
    from batchlas._kernels.ir import Expr
    from batchlas._kernels.scratch import Matrix, Scratch


class Reduction:
    """Reduces the m x n matrix `x`, m >= n, to the diagonal `d` and `e` above it.

    The reflectors stay in `x`: those from the left below the diagonal, those from the
    right behind the superdiagonal.
    """

    def __init__(self, scratch: Scratch, x: Matrix, m: Expr, n: Expr) -> None:
        self.k, self.x, self.m, self.n = scratch.k, x, m, n
        self.real = x.dtype.real
        self.d, self.e = scratch.vector(n, self.real), scratch.vector(n, self.real)
        self.left = reflectors(scratch, x, in_column, m, n)
        self.right = reflectors(scratch, x, in_row, n, n)
        self.w = scratch.vector(n, x.dtype)

    def write(self) -> None:
        """Write the reduction."""
        k, x = self.k, self.x
        for c in loop(k, 0, self.n, "c"):
            self.d[c], tau = reflect(self.left, c, self.m)
            with k.guard(c + 1 < self.n):
                self._sum_columns(c, conj(tau))
                for j in loop(k, c + 1, self.n, "j"):
                    x[c, j] = conj(x[c, j] - self.w[j])
                self.e[c], tau = reflect(self.right, c, self.n)
                for rows in blocks(k, c + 1, self.m):
                    self._update_rows(c, rows, tau)

    def _sum_columns(self, c: Expr, tau: Expr) -> None:
        """Compute w, the product of the reflector and the columns behind c."""
        k, x = self.k, self.x
        for js in blocks(k, c + 1, self.n):
            sums = zeros(k, "w", x.dtype, len(js))
            for i in loop(k, c, self.m):
                v = k.let(conj(self.left.v[i]), "v")
                for sum_, j in zip(sums, js, strict=True):
                    sum_.set(fma(v, x[i, j], sum_[()]))
            for sum_, j in zip(sums, js, strict=True):
                self.w[j] = tau * sum_[()]

    def _update_rows(self, c: Expr, rows: list[Expr], tau: Expr) -> None:
        """Apply the reflector from the left and then the one from the right."""
        k, x = self.k, self.x
        sums = zeros(k, "s", x.dtype, len(rows))
        lefts = [k.let(-self.left.v[i], "v") for i in rows]
        for j in loop(k, c + 1, self.n, "j"):
            w, right = k.let(self.w[j], "w"), k.let(self.right.v[j], "r")
            for i, left, sum_ in zip(rows, lefts, sums, strict=True):
                y = k.let(fma(left, w, x[i, j]), "y")
                x[i, j] = y
                sum_.set(fma(y, right, sum_[()]))
        parts = [k.let(-(tau * sum_[()]), "part") for sum_ in sums]
        for j in loop(k, c + 1, self.n, "j"):
            right = k.let(conj(self.right.v[j]), "r")
            for i, part in zip(rows, parts, strict=True):
                x[i, j] = fma(part, right, x[i, j])

    def form_left(self, q: Matrix, rows: Expr) -> None:
        """Make the rows of `q` the first rows of the left reflectors' adjoint."""
        form_in_pairs(self.left, self.n, q, rows, self.m)

    def form_right(self, p: Matrix) -> None:
        """Make the rows of `p` those of the adjoint of the right reflectors."""
        form_in_pairs(self.right, self.n - 1, p, self.n, self.n)
