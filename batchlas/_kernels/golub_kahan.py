"""Implicit QR iterations on bidiagonal matrices, one per lane.

All lanes make their sweeps together, each inside the last block of its own matrix that
has not split yet; rotations of lanes that have no part in a step are the identity. A
sweep's rotations are kept and then applied to the vectors, several columns at a time.

G. H. Golub, C. Reinsch, Singular value decomposition and least squares solutions,
Numer. Math. 14 (1970) 403-420, with the shift of LINPACK's svdc; none where a block is
singular to working precision (J. Demmel, W. Kahan, Accurate singular values of
bidiagonal matrices, SIAM J. Sci. Stat. Comput. 11 (1990) 873-912).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.functions import (
    absolute,
    any_lane,
    cast,
    fma,
    maximum,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Operand, as_expr
from batchlas._kernels.scratch import blocks, loop

if TYPE_CHECKING:
    from batchlas._kernels.bidiagonal import Reduction
    from batchlas._kernels.build import Ref
    from batchlas._kernels.scratch import Matrix, Scratch, Vector

SWEEPS = 30
"""Sweeps for each singular value before a matrix is given up; about 2 are needed."""
_UNIT = {DType.FLOAT32: 2.0**-24, DType.FLOAT64: 2.0**-53}


class Iteration:
    """Diagonalises `d` and `e`, and turns the rows of `q` and `p` along."""

    def __init__(self, scratch: Scratch, bidiagonal: Reduction) -> None:
        self.k, self.n = scratch.k, bidiagonal.n
        self.d, self.e, self.real = bidiagonal.d, bidiagonal.e, bidiagonal.real
        k, real = self.k, self.real
        self.turns = [scratch.vector(self.n, real) for _ in range(4)]
        self.norm = k.register("norm", real)
        # the block: first and last index, and the numbers that the shift is made of
        names = ("first", "last", "d0", "d1", "e1", "singular")
        self.block = [k.register(f"block_{name}", real) for name in names]
        self.first, self.last, self.d0, self.d1, self.e1, self.singular = self.block
        self.f, self.g = k.register("f", real), k.register("g", real)
        # for all lanes together
        self.low, self.high = k.register("low", INDEX), k.register("high", INDEX)
        self.top = k.register("top", INDEX)
        self.sweeps = k.register("sweeps", INDEX)

    def write(
        self, q: tuple[Matrix, Expr] | None, p: tuple[Matrix, Expr] | None
    ) -> Expr:
        """Write the iterations; return whether a lane's matrix did not converge."""
        k = self.k
        self._measure()
        self.sweeps.set(0)
        self.top.set(self.n - 1)
        with k.repeat() as again:
            self._search()
            with k.guard(self.high[()] > 0):
                self._start()
                for i in loop(k, self.low[()], self.high[()], "chase"):
                    self._step(i)
                self._finish()
                for matrix, turns in ((p, self.turns[:2]), (q, self.turns[2:])):
                    if matrix is not None:
                        self._turn(*matrix, *turns)
            self.sweeps.set(self.sweeps[()] + 1)
            limit = self.n * SWEEPS
            again.again_while((self.high[()] > 0) & (self.sweeps[()] < limit))
        return self.last[()] > 0

    def _number(self, i: Operand) -> Expr:
        return cast(as_expr(i, INDEX), self.real)

    def _measure(self) -> None:
        k = self.k
        self.norm.set(0)
        for i in loop(k, 0, self.n):
            size = maximum(self.norm[()], absolute(self.d[i]))
            self.norm.set(size)
            with k.guard(i + 1 < self.n):
                self.norm.set(maximum(self.norm[()], absolute(self.e[i])))
        self.e[self.n - 1] = Const(0, self.real)

    def _search(self) -> None:
        """Set what is negligible in e to zero, and find each lane's last block."""
        k, unit = self.k, _UNIT[self.real]
        for cell in self.block:
            cell.set(0)
        self.low.set(self.n)
        self.high.set(0)
        floor = k.let(self.norm[()] * unit, "floor")
        top = k.let(self.top[()], "top")  # beyond it, e is zero in all lanes
        for t in loop(k, 0, top, "t"):
            i = top - 1 - t
            e, d0, d1 = k.let(self.e[i], "e"), k.let(self.d[i]), k.let(self.d[i + 1])
            a0, a1 = k.let(absolute(d0), "a0"), k.let(absolute(d1), "a1")
            limit = maximum(floor, (a0 + a1) * unit)
            open_ = k.let(absolute(e) > limit, "open")
            self.e[i] = where(open_, e, 0.0)
            here, after = k.let(self._number(i), "here"), self._number(i + 1)
            starts = k.let(open_ & (self.last[()] <= 0), "starts")
            goes = k.let(open_ & (self.first[()].eq(after)), "goes")
            goes = k.let(goes & (self.last[()] > 0), "goes")
            inside = k.let(starts | goes, "inside")
            self.last.set(where(starts, after, self.last[()]))
            self.first.set(where(inside, here, self.first[()]))
            self.d0.set(where(starts, d0, self.d0[()]))
            self.d1.set(where(starts, d1, self.d1[()]))
            self.e1.set(where(starts, e, self.e1[()]))
            tiny = inside & ((a0 <= floor) | (a1 <= floor))
            self.singular.set(where(tiny, 1.0, self.singular[()]))
            with k.guard(any_lane(inside)):
                self.low.set(i)
                self.high.set(where(self.high[()] > 0, self.high[()], i + 1))
        self.top.set(self.high[()])

    def _active(self, i: Expr) -> Expr:
        """Return whether step i belongs to a lane's block."""
        here = self._number(i)
        return (self.first[()] <= here) & (here < self.last[()])

    def _start(self) -> None:
        """Find the first rotation of each lane from the shift."""
        k = self.k
        first_d, first_e = (
            k.register("first_d", self.real),
            k.register("first_e", self.real),
        )
        first_d.set(0)
        first_e.set(0)
        for i in loop(k, self.low[()], self.high[()], "seek"):
            here = k.let(self._number(i).eq(self.first[()]), "is_first")
            first_d.set(where(here, self.d[i], first_d[()]))
            first_e.set(where(here, self.e[i], first_e[()]))
        parts = [self.d0, self.d1, self.e1, first_d, first_e]
        size = absolute(parts[0][()])
        for part in parts[1:]:
            size = maximum(size, absolute(part[()]))
        size = k.let(size, "size")
        inverse = k.let(1.0 / where(size > 0, size, 1.0), "inverse")
        d0, d1, e1, f, g = (k.let(part[()] * inverse, "part") for part in parts)
        b = k.let(fma(d0 + d1, d0 - d1, e1 * e1) * 0.5, "b")
        c = k.let((d1 * e1) * (d1 * e1), "c")
        root = k.let(sqrt(fma(b, b, c)), "root")
        sum_ = k.let(where(b < 0, b - root, b + root), "sum")
        shift = where(absolute(sum_) > 0, c / sum_, 0.0)
        shifted = k.let(fma(f + d1, f - d1, shift), "shifted")
        plain = k.let(self.singular[()] > 0, "plain")
        self.f.set(where(plain, f, shifted))
        self.g.set(where(plain, g, f * g))

    def _step(self, i: Expr) -> None:
        """Chase the bulge over one more row and column."""
        k = self.k
        active = k.let(self._active(i), "active")
        begins = k.let(self._number(i).eq(self.first[()]), "begins")
        f, g = k.let(self.f[()], "f"), k.let(self.g[()], "g")
        c, s, r = self._rotation(f, g, active)
        with k.guard(i > 0):
            before = i - 1
            self.e[before] = where(active & ~begins, r, self.e[before])
        self.turns[0][i] = c
        self.turns[1][i] = s
        d, e = k.let(self.d[i], "d"), k.let(self.e[i], "e")
        d1 = k.let(self.d[i + 1], "d1")
        f = k.let(fma(c, d, s * e), "f")
        e_ = k.let(fma(c, e, -(s * d)), "e")
        g = k.let(s * d1, "g")
        d1_ = k.let(c * d1, "d1")
        c, s, r = self._rotation(f, g, active)
        self.turns[2][i] = c
        self.turns[3][i] = s
        # Where the rotations are the identity, these are the old numbers.
        self.d[i] = r
        self.d[i + 1] = fma(c, d1_, -(s * e_))
        next_ = k.let(self.e[i + 1], "e2")
        self.e[i + 1] = c * next_
        self.f.set(where(active, fma(c, e_, s * d1_), self.f[()]))
        self.g.set(where(active, s * next_, self.g[()]))

    def _finish(self) -> None:
        """Store what is left of each lane's bulge as its last superdiagonal element."""
        for i in loop(self.k, self.low[()], self.high[()], "seek"):
            ends = self._number(i + 1).eq(self.last[()])
            self.e[i] = where(ends, self.f[()], self.e[i])

    def _rotation(self, f: Expr, g: Expr, active: Expr) -> tuple[Expr, Expr, Expr]:
        """Return cosine, sine and the length of (f, g); the identity for others."""
        k = self.k
        square = k.let(fma(f, f, g * g), "square")
        some = k.let(active & (square > 0), "some")
        length = k.let(sqrt(square), "length")
        inverse = k.let(1.0 / where(some, length, 1.0), "inverse")
        c = k.let(where(some, f * inverse, 1.0), "c")
        s = k.let(where(some, g * inverse, 0.0), "s")
        return c, s, k.let(where(some, length, f), "r")

    def _turn(self, a: Matrix, columns: Expr, cosines: Vector, sines: Vector) -> None:
        """Rotate neighbouring rows, one pair after the other."""
        k = self.k
        for js in blocks(k, 0, columns):
            carried: list[Ref] = []
            for e, j in enumerate(js):
                cell = k.register(f"carried{e}", self.real)
                cell.set(a[self.low[()], j])
                carried.append(cell)
            for i in loop(k, self.low[()], self.high[()]):
                c, s = k.let(cosines[i], "c"), k.let(sines[i], "s")
                for cell, j in zip(carried, js, strict=True):
                    y, z = k.let(cell[()], "y"), k.let(a[i + 1, j], "z")
                    a[i, j] = fma(c, y, s * z)
                    cell.set(fma(c, z, -(s * y)))
            for cell, j in zip(carried, js, strict=True):
                a[self.high[()], j] = cell[()]

    # afterwards

    def make_positive(self, p: tuple[Matrix, Expr] | None) -> None:
        """Give all values a positive sign, at the cost of the rows of p."""
        k = self.k
        for i in loop(k, 0, self.n):
            d = k.let(self.d[i], "d")
            negative = k.let(d < 0, "negative")
            self.d[i] = absolute(d)
            if p is None:
                continue
            a, columns = p
            with k.guard(any_lane(negative)):
                for j in loop(k, 0, columns, "j"):
                    y = k.let(a[i, j], "y")
                    a[i, j] = where(negative, -y, y)

    def sort(self, *matrices: tuple[Matrix, Expr]) -> None:
        """Bring values and rows into descending order."""
        k = self.k
        for i in loop(k, 0, self.n):
            for j in loop(k, i + 1, self.n, "j"):
                one, other = k.let(self.d[i], "one"), k.let(self.d[j], "other")
                swap = k.let(one < other, "swap")
                with k.guard(any_lane(swap)):
                    self.d[i] = where(swap, other, one)
                    self.d[j] = where(swap, one, other)
                    for a, columns in matrices:
                        for c in loop(k, 0, columns, "c"):
                            y, z = k.let(a[i, c], "y"), k.let(a[j, c], "z")
                            a[i, c] = where(swap, z, y)
                            a[j, c] = where(swap, y, z)
