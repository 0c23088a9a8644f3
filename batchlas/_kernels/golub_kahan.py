"""Implicit QR iterations on bidiagonal matrices, one per lane.

All lanes make their sweeps together, each inside the last block of its own matrix that
has not split yet; rotations of lanes that have no part in a step are the identity. The
rotations of two sweeps are kept and then applied to the vectors in one pass, several
columns at a time.

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
    copysign,
    fma,
    maximum,
    minimum,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Operand, as_expr
from batchlas._kernels.scratch import blocks, loop
from batchlas._kernels.shears import rotated
from batchlas._kernels.svd_scaling import NOTHING
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.bidiagonal import Reduction
    from batchlas._kernels.build import KernelBuilder, Ref
    from batchlas._kernels.scratch import Matrix, Scratch

PASS = 2
"""Sweeps whose rotations are applied together."""
SWEEPS = 30
"""Sweeps for each singular value before a matrix is given up; about 2 are needed."""
_UNIT = {DType.FLOAT32: 2.0**-24, DType.FLOAT64: 2.0**-53}


class Iteration:
    """Diagonalises `d` and `e`, and turns the rows of `q` and `p` along."""

    def __init__(self, scratch: Scratch, bidiagonal: Reduction) -> None:
        self.k, self.n = scratch.k, bidiagonal.n
        self.d, self.e, self.real = bidiagonal.d, bidiagonal.e, bidiagonal.real
        k, real = self.k, self.real
        # rotations from the right, for p, and from the left, for q
        self.turns = [Turns(scratch, self.n, real) for _ in range(2)]
        self.norm = k.register("norm", real)
        # the block: first and last index, and the numbers that the shift is made of
        names = ("first", "last", "singular", "d0", "d1", "e1", "first_d", "first_e")
        self.block = [k.register(f"block_{name}", real) for name in names]
        self.first, self.last, self.singular, *self.shift = self.block
        self.f, self.g = k.register("f", real), k.register("g", real)
        # for all lanes together
        self.low, self.high = k.register("low", INDEX), k.register("high", INDEX)
        self.top = k.register("top", INDEX)
        self.lows, self.highs = (
            k.register(name, INDEX, (PASS,)) for name in ("lows", "highs")
        )
        self.base, self.ceiling = k.register("base", INDEX), k.register("ceil", INDEX)
        self.sweeps = k.register("sweeps", INDEX)

    def write(
        self, q: tuple[Matrix, Expr] | None, p: tuple[Matrix, Expr] | None
    ) -> Expr:
        """Write the iterations; return whether a lane's matrix did not converge."""
        k = self.k
        matrices = [each for each in (p, q) if each is not None]
        self._measure()
        self.sweeps.set(0)
        self.top.set(self.n - 1)
        with k.repeat() as again:
            if matrices:
                self._sweep_twice(matrices)
            else:
                self._search()
                with k.guard(self.high[()] > 0):
                    self._sweep(None)
            self.sweeps.set(self.sweeps[()] + (PASS if matrices else 1))
            limit = self.n * SWEEPS
            again.again_while((self.high[()] > 0) & (self.sweeps[()] < limit))
        return self.last[()] > 0

    def _sweep_twice(self, matrices: Sequence[tuple[Matrix, Expr]]) -> None:
        """Make two sweeps, of which the second may find nothing to do; apply both."""
        k = self.k
        self.base.set(self.n)
        self.ceiling.set(0)
        for sweep in loop(k, 0, PASS, "sweep"):
            self._search()
            self.lows[sweep], self.highs[sweep] = self.low[()], self.high[()]
            with k.guard(self.high[()] > 0):
                self._sweep(fold(sweep * self.n))
                self.base.set(minimum(self.base[()], self.low[()]))
                self.ceiling.set(maximum(self.ceiling[()], self.high[()]))
        with k.guard(self.ceiling[()] > 0):
            self._fill_up()
            for matrix, turns in zip(matrices, self.turns, strict=True):
                self._turn(*matrix, turns)

    def _fill_up(self) -> None:
        """Make the rotations outside a sweep's own rows the identity."""
        k = self.k
        base, ceiling = k.let(self.base[()], "base"), k.let(self.ceiling[()], "ceiling")
        for sweep in loop(k, 0, PASS, "sweep"):
            kept = k.let(sweep * self.n, "kept")
            low = k.let(minimum(self.lows[sweep], ceiling), "low")
            high = k.let(maximum(self.highs[sweep], base), "high")
            for start, stop in ((base, low), (high, ceiling)):
                for i in loop(k, start, stop):
                    for turns in self.turns:
                        turns.forget(kept + i)

    def _sweep(self, kept: Expr | None) -> None:
        """Make one sweep; keep its rotations from `kept` on."""
        self._start()
        for i in loop(self.k, self.low[()], self.high[()], "chase"):
            self._step(i, kept)

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
            conditions = (starts, starts, starts, inside, inside)
            numbers = (d0, d1, e, d0, e)
            for cell, cond, x in zip(self.shift, conditions, numbers, strict=True):
                cell.set(where(cond, x, cell[()]))
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
        parts = self.shift
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

    def _step(self, i: Expr, kept: Expr | None) -> None:
        """Chase the bulge over one more row and column."""
        k = self.k
        active = k.let(self._active(i), "active")
        begins = k.let(self._number(i).eq(self.first[()]), "begins")
        f, g = k.let(self.f[()], "f"), k.let(self.g[()], "g")
        c, s, r = self._rotation(f, g, active)
        with k.guard(i > 0):
            before = i - 1
            self.e[before] = where(active & ~begins, r, self.e[before])
        if kept is not None:
            self.turns[0].keep(kept + i, c, s)
        d, e = k.let(self.d[i], "d"), k.let(self.e[i], "e")
        d1 = k.let(self.d[i + 1], "d1")
        f = k.let(fma(c, d, s * e), "f")
        e_ = k.let(fma(c, e, -(s * d)), "e")
        g = k.let(s * d1, "g")
        d1_ = k.let(c * d1, "d1")
        c, s, r = self._rotation(f, g, active)
        if kept is not None:
            self.turns[1].keep(kept + i, c, s)
        # Where the rotations are the identity, these are the old numbers.
        self.d[i] = r
        self.d[i + 1] = fma(c, d1_, -(s * e_))
        next_ = k.let(self.e[i + 1], "e2")
        self.e[i + 1] = c * next_
        f = k.let(where(active, fma(c, e_, s * d1_), self.f[()]), "f")
        self.f.set(f)
        self.g.set(where(active, s * next_, self.g[()]))
        # what is left of a lane's bulge is its last superdiagonal element
        self.e[i] = where(self._number(i + 1).eq(self.last[()]), f, e)

    def _rotation(self, f: Expr, g: Expr, active: Expr) -> tuple[Expr, Expr, Expr]:
        """Return cosine, sine and r of (f, g), r with the sign of f; else the identity.

        So the cosine is positive, as shears want it.
        """
        k = self.k
        square = k.let(fma(f, f, g * g), "square")
        some = k.let(active & (square > NOTHING[self.real]), "some")
        square = k.let(where(some, square, 1.0), "square")
        length = k.let(copysign(sqrt(square), f), "length")
        # a root and a division at once: each step waits for the one before
        inverse = k.let(length * (1.0 / square), "inverse")
        c = k.let(where(some, f * inverse, 1.0), "c")
        s = k.let(where(some, g * inverse, 0.0), "s")
        return c, s, k.let(where(some, length, f), "r")

    def _turn(self, a: Matrix, columns: Expr, turns: Turns) -> None:
        """Rotate neighbouring rows, one pair after the other, by two sweeps.

        The second one follows a row behind, so that each element is loaded and stored
        once for both.
        """
        k, n = self.k, self.n
        base, ceiling = k.let(self.base[()], "base"), k.let(self.ceiling[()], "ceiling")
        for js in blocks(k, 0, columns):
            y, x = rotated(
                k, turns[base], [a[base + 1, j] for j in js], [a[base, j] for j in js]
            )
            first, second = held(k, "x", x), held(k, "y", y)
            for i in loop(k, base + 1, ceiling):
                row = [a[i + 1, j] for j in js]
                y, x = rotated(k, turns[i], row, values(first))
                z, y = rotated(k, turns[n + i - 1], y, values(second))
                for t, j in enumerate(js):
                    a[i - 1, j] = z[t]
                    first[t].set(x[t])
                    second[t].set(y[t])
            last = turns[n + ceiling - 1]
            y, x = rotated(k, last, values(first), values(second))
            for t, j in enumerate(js):
                a[ceiling - 1, j], a[ceiling, j] = y[t], x[t]

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


class Turns:
    """Rotations of the sweeps that are applied together, `n` places for each sweep."""

    def __init__(self, scratch: Scratch, n: Expr, real: DType) -> None:
        self.k, self.n = scratch.k, n
        self.half, self.sine = (scratch.vector(fold(n * PASS), real) for _ in range(2))

    def forget(self, place: Expr) -> None:
        """Make a rotation the identity."""
        zero = Const(0, self.half.dtype)
        self.half[place], self.sine[place] = zero, zero

    def keep(self, place: Expr, c: Expr, s: Expr) -> None:
        """Keep a rotation with a positive cosine."""
        self.half[place] = s / (1 + c)
        self.sine[place] = s

    def __getitem__(self, place: Expr) -> tuple[Expr, Expr]:
        half = self.k.let(self.half[place], "half")
        return half, self.k.let(-self.sine[place], "s")


def held(k: KernelBuilder, name: str, numbers: Sequence[Expr]) -> list[Ref]:
    """Return registers that are set to numbers."""
    return [k.variable(each, name) for each in numbers]


def values(refs: Sequence[Ref]) -> list[Expr]:
    """Return what registers hold."""
    return [ref[()] for ref in refs]
