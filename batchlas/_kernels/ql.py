"""Implicit QL iterations on tridiagonal matrices, one per lane.

The lanes go at their own pace. Before every sweep one pass over the off-diagonal sets
what is negligible to zero and finds, for each lane, the first block that is not yet
diagonal. The sweep then runs over all blocks together, from the last row to the first
that any lane still works on, and each lane takes part only inside its own block. The
rotations of a sweep are kept, and applied to the vectors afterwards, rows at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batchlas._kernels.functions import (
    absolute,
    any_lane,
    cast,
    copysign,
    fma,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, Expr, index_const
from batchlas._kernels.scaling import RANGES
from batchlas._kernels.tridiagonal import multiply_add_real, scaled

if TYPE_CHECKING:
    from batchlas._kernels.build import KernelBuilder, Ref
    from batchlas._kernels.tridiagonal import Matrix, Reduction

SWEEPS = 30
"""Sweeps for each eigenvalue before a matrix is given up."""


class _Block(NamedTuple):
    """What the search found: where each lane's block lies, and its first elements."""

    first: Ref
    end: Ref
    d0: Ref
    d1: Ref
    e0: Ref
    last: Ref


class Iteration:
    """Writes the iterations for the diagonal d and the off-diagonal e, in place."""

    def __init__(self, t: Reduction, capacity: int) -> None:
        self.a, self.k, self.n = t.a, t.k, t.n
        self.d, self.e = t.d, t.e
        self.real, self.vectors = t.real, t.vectors
        self.known = RANGES[self.real]
        k, real = t.k, t.real
        if t.vectors:
            self.c = k.register("c", real, (capacity,))
            self.s = k.register("s", real, (capacity,))
        # for all lanes together
        self.found = k.register("found", INDEX)
        self.low = k.register("low", INDEX)
        self.high = k.register("high", INDEX)
        self.sweeps = k.register("sweeps", INDEX)
        # for each lane
        names = ("first", "end", "d0", "d1", "e0", "last")
        self.block = _Block(*(k.register(f"b_{name}", real) for name in names))
        self.open = k.register("open", real)

    def write(self) -> Expr:
        """Write all of it; return whether a lane's matrix has not converged."""
        k = self.k
        if not self.vectors:
            for i in self.a.loop(0, self.n):
                self.e[i] = self.e[i] * self.e[i]
        self.low.set(0)
        self.sweeps.set(0)
        with k.repeat() as again:
            self._search()
            found = self.found[()] > 0
            with k.guard(found):
                (self._sweep if self.vectors else self._sweep_squares)()
                if self.vectors:
                    self._apply()
            self.sweeps.set(self.sweeps[()] + 1)
            again.again_while(found & (self.sweeps[()] < self.n * SWEEPS))
        return self.open[()] > 0

    # the search

    def _search(self) -> None:
        k, block = self.k, self.block
        zero, one = Const(0, self.real), Const(1, self.real)
        self.found.set(0)
        self.high.set(0)
        self.open.set(zero)
        for ref in block:
            ref.set(zero)
        done = k.variable(zero, "done")
        start = k.let(self.low[()], "start")
        for i in self.a.loop(start, self.n - 1):
            d0, d1, e0 = (k.let(x, "x") for x in (self.d[i], self.d[i + 1], self.e[i]))
            size = k.let(absolute(d0) + absolute(d1), "size")
            small = k.let(self._is_negligible(e0, size), "small")
            self.e[i] = where(small, zero, e0)
            opened = self.open[()] > 0
            starts = k.let(~small & ~opened, "starts")
            place = k.let(cast(i, self.real), "place")
            firsts = (block.first, block.d0, block.d1, block.e0)
            for ref, value in zip(firsts, (place, d0, d1, e0), strict=True):
                ref.set(where(starts, value, ref[()]))
            self.open.set(where(small, self.open[()], one))
            done.set(where(small & opened, one, done[()]))
            inside = k.let((self.open[()] > 0) & ~(done[()] > 0), "inside")
            block.end.set(where(inside, place + 1, block.end[()]))
            block.last.set(where(inside, d1, block.last[()]))
            some = k.let(any_lane(inside), "some")
            fresh = some & (self.found[()] < 1)
            self.low.set(where(fresh, i, self.low[()]))
            self.high.set(where(some, i + 1, self.high[()]))
            self.found.set(where(some, index_const(1), self.found[()]))

    def _is_negligible(self, e0: Expr, size: Expr) -> Expr:
        eps, known = self.known.eps, self.known
        if self.vectors:
            return (absolute(e0) <= size * eps) | (absolute(e0) <= 2.0**known.floor)
        bound = self.k.let(size * eps, "bound")
        return (e0 <= bound * bound) | (e0 <= known.tiny)

    def _is_active(self, i: Expr) -> Expr:
        place = self.k.let(cast(i, self.real), "place")
        inside = (place >= self.block.first[()]) & (place < self.block.end[()])
        return self.k.let(inside, "active")

    # rotations, for vectors

    def _sweep(self) -> None:
        """Chase the bulge of one implicit shift up; keep the rotations in c and s."""
        k, block = self.k, self.block
        zero, one = Const(0, self.real), Const(1, self.real)
        e0 = k.let(where(block.e0[()].eq(0), one, block.e0[()]), "e0")
        half = k.let((block.d1[()] - block.d0[()]) / (e0 + e0), "half")
        root = k.let(sqrt(fma(half, half, one)), "root")
        shift = block.d0[()] - e0 / (half + copysign(root, half))
        g = k.variable(block.last[()] - shift, "g")
        c, s = k.variable(one, "c"), k.variable(one, "s")
        high = k.let(self.high[()], "high")
        low = k.let(self.low[()], "low")
        d_up, e_up = k.variable(self.d[high], "d_up"), k.variable(self.e[high], "e_up")
        for i in self.a.down(high, low):
            active = self._is_active(i)
            e, d = k.let(self.e[i], "e"), k.let(self.d[i], "d")
            f, b = k.let(s[()] * e, "f"), k.let(c[()] * e, "b")
            square = k.let(fma(f, f, g[()] * g[()]), "square")
            none = k.let(square <= self.known.tiny, "none")
            inverse = k.let(1 / sqrt(where(none, one, square)), "inverse")
            r = k.let(where(none, zero, square * inverse), "r")
            s1 = k.let(where(none, zero, f * inverse), "s1")
            c1 = k.let(where(none, one, g[()] * inverse), "c1")
            t = k.let(fma(d - d_up[()], s1, 2 * c1 * b), "t")
            p = k.let(s1 * t, "p")
            self.d[i + 1] = where(active, d_up[()] + p, d_up[()])
            below = (cast(i, self.real) + 1) < block.end[()]
            self.e[i + 1] = where(active & below, r, e_up[()])
            d_up.set(where(active, d - p, d))
            g.set(where(active, fma(c1, t, -b), g[()]))
            e_up.set(where(active, g[()], e))
            c.set(where(active, c1, c[()]))
            s.set(where(active, s1, s[()]))
            self.c[i] = where(active, c1, one)
            self.s[i] = where(active, s1, zero)
        self.d[low] = d_up[()]
        self.e[low] = e_up[()]

    def _apply(self) -> None:
        """Apply the rotations of a sweep to all rows of the vectors."""
        k, a = self.k, self.a
        high, low = k.let(self.high[()], "high"), k.let(self.low[()], "low")
        for row, count in a.blocks(self.n):
            rows = range(count)
            x = [k.variable(a[row + r, high], "x") for r in rows]
            for i in a.down(high, low):
                c, s = k.let(self.c[i], "c"), k.let(self.s[i], "s")
                for r in rows:
                    z = k.let(a[row + r, i], "z")
                    a[row + r, i + 1] = rotated(s, z, c, x[r][()])
                    x[r].set(rotated(c, z, -s, x[r][()]))
            for r in rows:
                a[row + r, low] = x[r][()]

    # the root-free form, for values only

    def _sweep_squares(self) -> None:
        """Do one sweep of the root-free form, in which e holds squares."""
        k, block = self.k, self.block
        zero, one = Const(0, self.real), Const(1, self.real)
        e0 = k.let(sqrt(where(block.e0[()] > 0, block.e0[()], one)), "e0")
        half = k.let((block.d1[()] - block.d0[()]) / (e0 + e0), "half")
        root = k.let(sqrt(fma(half, half, one)), "root")
        sigma = k.let(block.d0[()] - e0 / (half + copysign(root, half)), "sigma")
        gamma = k.variable(block.last[()] - sigma, "gamma")
        p = k.variable(gamma[()] * gamma[()], "p")
        c, s = k.variable(one, "c"), k.variable(zero, "s")
        high = k.let(self.high[()], "high")
        low = k.let(self.low[()], "low")
        d_up, e_up = k.variable(self.d[high], "d_up"), k.variable(self.e[high], "e_up")
        for i in self.a.down(high, low):
            active = self._is_active(i)
            e, d = k.let(self.e[i], "e"), k.let(self.d[i], "d")
            r = k.let(where(active, p[()] + e, one), "r")
            inverse = k.let(1 / r, "inverse")
            flat = k.let(p[()].eq(0), "flat")
            ratio = k.let(r / where(flat, one, p[()]), "ratio")
            below = (cast(i, self.real) + 1) < block.end[()]
            self.e[i + 1] = where(active & below, s[()] * r, e_up[()])
            c1, s1 = k.let(p[()] * inverse, "c1"), k.let(e * inverse, "s1")
            g1 = k.let(fma(c1, d - sigma, -(s1 * gamma[()])), "g1")
            self.d[i + 1] = where(active, gamma[()] + (d - g1), d_up[()])
            p1 = k.let(where(flat, c[()] * e, g1 * g1 * ratio), "p1")
            d_up.set(where(active, sigma + g1, d))
            e_up.set(where(active, s1 * p1, e))
            for ref, value in ((gamma, g1), (p, p1), (c, c1), (s, s1)):
                ref.set(where(active, value, ref[()]))
        self.d[low] = d_up[()]
        self.e[low] = e_up[()]


def rotated(c: Expr, x: Expr, s: Expr, y: Expr) -> Expr:
    """Return c x + s y for real c and s."""
    return multiply_add_real(c, x, scaled(y, s))


def sort(k: KernelBuilder, a: Matrix, d: Ref, order: Ref | None) -> None:
    """Sort d in ascending order, and with it the numbers that `order` holds; stable."""
    for t in a.loop(0, a.n - 1):
        x = k.variable(d[index_const(0)], "x")
        at = None if order is None else k.variable(order[index_const(0)], "at")
        for i in a.loop(1, a.n - t):
            y = k.let(d[i], "y")
            swap = k.let(y < x[()], "swap")
            d[i - 1] = where(swap, y, x[()])
            x.set(where(swap, x[()], y))
            if order is None or at is None:
                continue
            z = k.let(order[i], "z")
            order[i - 1] = where(swap, z, at[()])
            at.set(where(swap, at[()], z))
        d[a.n - 1 - t] = x[()]
        if order is not None and at is not None:
            order[a.n - 1 - t] = at[()]
