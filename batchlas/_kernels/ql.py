"""Implicit QL iterations on tridiagonal matrices, one per lane.

The lanes go at their own pace, each in the first block of its matrix that is not yet
diagonal. A sweep runs from the last row to the first that any lane still works on, and
a lane takes part only inside its own block. On the way it sets to zero what has become
negligible and finds the blocks of the next sweep: its steps wait for a root and a
division each, so that costs no time. The rotations of two sweeps are kept, and applied
to the vectors afterwards in one pass, rows at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batchlas._kernels.functions import (
    absolute,
    any_lane,
    cast,
    copysign,
    fma,
    maximum,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, index_const
from batchlas._kernels.scaling import RANGES
from batchlas._kernels.shears import rotated
from batchlas._kernels.walk import fold

if TYPE_CHECKING:
    from batchlas._kernels.build import KernelBuilder, Ref
    from batchlas._kernels.tridiagonal import Matrix, Reduction

PASS = 2
"""Sweeps whose rotations are applied together."""
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


class _Values(NamedTuple):
    """The same as values, which stay while the next blocks are searched."""

    first: Expr
    end: Expr
    d0: Expr
    d1: Expr
    e0: Expr
    last: Expr


class _Rotations(NamedTuple):
    """Those of the sweeps that are applied together, n for each sweep.

    ``half`` holds tangents of half the angle, ``s`` sines; ``base`` and ``ceiling`` are
    the first and the last row that they turn.
    """

    half: Ref
    s: Ref
    base: Ref
    ceiling: Ref


class Iteration:
    """Writes the iterations for the diagonal d and the off-diagonal e, in place."""

    def __init__(self, t: Reduction, capacity: int) -> None:
        self.a, self.k, self.n = t.a, t.k, t.n
        self.d, self.e = t.d, t.e
        self.real, self.vectors = t.real, t.vectors
        self.known = RANGES[self.real]
        k, real = t.k, t.real
        if t.vectors:
            self.rotations = _Rotations(
                k.register("half", real, (PASS * capacity,)),
                k.register("s", real, (PASS * capacity,)),
                k.register("base", INDEX),
                k.register("ceiling", INDEX),
            )
        # for all lanes together
        self.low = k.register("low", INDEX)
        self.high = k.register("high", INDEX)
        self.sweeps = k.register("sweeps", INDEX)
        # for each lane
        names = ("first", "end", "d0", "d1", "e0", "last")
        self.block = _Block(*(k.register(f"b_{name}", real) for name in names))
        self.gap = k.register("gap", DType.BOOL)

    def write(self) -> Expr:
        """Write all of it; return whether a lane's matrix has not converged."""
        k = self.k
        if not self.vectors:
            for i in self.a.loop(0, self.n):
                self.e[i] = self.e[i] * self.e[i]
        self.low.set(0)
        self.sweeps.set(0)
        self._forget()
        for i in self.a.down(self.n - 1, 0):
            d0, d1, e0 = (k.let(x, "x") for x in (self.d[i], self.d[i + 1], self.e[i]))
            self.e[i] = self._noted(i, d0, d1, e0)
        with k.repeat() as again:
            found = k.let(any_lane(self._is_open()), "found")
            with k.guard(found):
                self._sweep_pairs() if self.vectors else self._sweep_squares()
            self.sweeps.set(self.sweeps[()] + (PASS if self.vectors else 1))
            again.again_while(found & (self.sweeps[()] < self.n * SWEEPS))
        return self._is_open()

    # the search

    def _forget(self) -> None:
        for ref in self.block:
            ref.set(Const(0, self.real))
        self.gap.set(Const(value=True, type=DType.BOOL))

    def _noted(self, i: Expr, d0: Expr, d1: Expr, e0: Expr) -> Expr:
        """Take note of e[i] and the diagonal beside it, from the last i to the first.

        Returns e[i], zero if it is negligible. What is noted last is the first block.
        """
        k, block = self.k, self.block
        size = k.let(absolute(d0) + absolute(d1), "size")
        small = k.let(self._is_negligible(e0, size), "small")
        ends = k.let(~small & self.gap[()], "ends")
        place = k.let(cast(i, self.real), "place")
        block.end.set(where(ends, place + 1, block.end[()]))
        block.last.set(where(ends, d1, block.last[()]))
        firsts = (block.first, block.d0, block.d1, block.e0)
        for ref, value in zip(firsts, (place, d0, d1, e0), strict=True):
            ref.set(where(small, ref[()], value))
        self.gap.set(small)
        return where(small, Const(0, self.real), e0)

    def _is_open(self) -> Expr:
        """Return whether a lane has a block that is not diagonal."""
        return self.block.first[()] < self.block.end[()]

    def _bound(self) -> None:
        """Find the first and the last row that any lane works on."""
        k, block, is_open = self.k, self.block, self._is_open()
        self.low.set(self.low[()] - 1)
        with k.repeat() as again:
            self.low.set(self.low[()] + 1)
            low = cast(self.low[()], self.real)
            again.again_while(~any_lane(is_open & (block.first[()] <= low)))
        self.high.set(self.n)
        with k.repeat() as again:
            self.high.set(self.high[()] - 1)
            high = cast(self.high[()], self.real)
            again.again_while(~any_lane(is_open & (block.end[()] >= high)))

    def _is_negligible(self, e0: Expr, size: Expr) -> Expr:
        eps, known = self.known.eps, self.known
        if self.vectors:
            return (absolute(e0) <= size * eps) | (absolute(e0) <= 2.0**known.floor)
        bound = self.k.let(size * eps, "bound")
        return (e0 <= bound * bound) | (e0 <= known.tiny)

    def _taken(self) -> _Values:
        """Return the blocks as values, and forget them."""
        block = _Values(*(self.k.let(ref[()], "b") for ref in self.block))
        self._forget()
        return block

    def _is_active(self, i: Expr, block: _Values) -> tuple[Expr, Expr]:
        """Return whether i, and whether i + 1 as well, lies in a lane's block."""
        place = self.k.let(cast(i, self.real), "place")
        inside = (place >= block.first) & (place < block.end)
        active = self.k.let(inside, "active")
        return active, active & (place + 1 < block.end)

    def _shift(self, block: _Values, e0: Expr) -> Expr:
        """Return the eigenvalue of a block's first two rows that is nearer to d0."""
        k = self.k
        half = k.let((block.d1 - block.d0) / (e0 + e0), "half")
        root = k.let(sqrt(fma(half, half, 1)), "root")
        return block.d0 - e0 / (half + copysign(root, half))

    def _keep(self, i: Expr, d: Expr, e: Expr, above: Ref) -> None:
        """Store what a sweep leaves at i, and search it for the next one's blocks."""
        e = self.k.let(e, "e_new")
        self.d[i] = d
        self.e[i] = self._noted(i, d, above[()], e)
        above.set(d)

    # rotations, for vectors

    def _sweep_pairs(self) -> None:
        """Make two sweeps and apply both; the second one may find nothing to do."""
        k, a, kept = self.k, self.a, self.rotations
        kept.base.set(0)
        kept.ceiling.set(0)
        for turn in a.loop(0, PASS):
            found = k.let(any_lane(self._is_open()), "found")
            start = k.let(turn * self.n, "start")
            with k.guard(found):
                self._bound()
                first, high = k.let(turn.eq(0), "first"), self.high[()]
                kept.base.set(where(first, self.low[()], kept.base[()]))
                kept.ceiling.set(maximum(kept.ceiling[()], high))
                self._sweep(start)
            # rows that this sweep did not reach, but the one before
            stop = k.let(where(found, self.low[()], self.n - 1), "stop")
            for i in a.loop(kept.base[()], stop):
                kept.half[start + i] = Const(0, self.real)
                kept.s[start + i] = Const(0, self.real)
        self._apply()

    def _sweep(self, start: Expr) -> None:
        """Chase the bulge of one implicit shift up; keep the rotations from `start`.

        Their cosines are made positive, as shears want it.
        """
        k, block = self.k, self._taken()
        zero, one = Const(0, self.real), Const(1, self.real)
        half, sines = self.rotations.half, self.rotations.s
        e0 = k.let(where(block.e0.eq(0), one, block.e0), "e0")
        g = k.variable(block.last - self._shift(block, e0), "g")
        c, s = k.variable(one, "c"), k.variable(one, "s")
        low, top = k.let(self.low[()], "low"), self.n - 1
        d_up, e_up = k.variable(self.d[top], "d_up"), k.variable(zero, "e_up")
        above = k.variable(zero, "above")
        for i in self.a.down(top, low):
            active, both = self._is_active(i, block)
            e, d = k.let(self.e[i], "e"), k.let(self.d[i], "d")
            f, b = k.let(s[()] * e, "f"), k.let(c[()] * e, "b")
            square = k.let(fma(f, f, g[()] * g[()]), "square")
            none = k.let(square <= self.known.tiny, "none")
            square = k.let(where(none, one, square), "square")
            # a root and a division at once, and g without waiting for the root: each
            # step waits for the one before
            over = k.let(1 / square, "over")
            inverse = k.let(copysign(sqrt(square) * over, g[()]), "inverse")
            r = k.let(where(none, zero, square * inverse), "r")
            s1 = k.let(where(none, zero, f * inverse), "s1")
            c1 = k.let(where(none, one, g[()] * inverse), "c1")
            gap = k.let(d - d_up[()], "gap")
            rest = k.let(fma(f, gap, g[()] * (b + b)), "rest")
            t = k.let(fma(gap, s1, c1 * (b + b)), "t")
            p = k.let(s1 * t, "p")
            g1 = k.let(where(none, b, fma(rest, g[()] * over, -b)), "g1")
            d_new = k.let(where(active, d_up[()] + p, d_up[()]), "d_new")
            self._keep(i + 1, d_new, where(both, r, e_up[()]), above)
            d_up.set(where(active, d - p, d))
            g.set(where(active, g1, g[()]))
            e_up.set(where(active, g[()], e))
            c.set(where(active, c1, c[()]))
            s.set(where(active, s1, s[()]))
            half[start + i] = where(active, s1 / (1 + c1), zero)
            sines[start + i] = where(active, s1, zero)
        self._keep(low, d_up[()], e_up[()], above)

    def _apply(self) -> None:
        """Apply the rotations of two sweeps to all rows of the vectors.

        The second sweep follows one column behind, so that each element is loaded and
        stored once for both.
        """
        k, a, kept = self.k, self.a, self.rotations
        low, high = k.let(kept.base[()], "low"), k.let(kept.ceiling[()], "high")
        for row, count in a.blocks(self.n):
            rows = [k.let(row + r, "row") for r in range(count)]
            x = [a[r, high] for r in rows]
            y, x = rotated(
                k, self._rotation(0, high - 1), [a[r, high - 1] for r in rows], x
            )
            first = [k.variable(each, "x") for each in x]
            second = [k.variable(each, "y") for each in y]
            for i in a.down(high - 1, low):
                x, y = ([each[()] for each in refs] for refs in (first, second))
                one, two = self._rotation(0, i), self._rotation(1, i + 1)
                z, x = rotated(k, one, [a[r, i] for r in rows], x)
                z, y = rotated(k, two, z, y)
                for t, r in enumerate(rows):
                    a[r, i + 2] = z[t]
                    first[t].set(x[t])
                    second[t].set(y[t])
            x, y = ([each[()] for each in refs] for refs in (first, second))
            z, y = rotated(k, self._rotation(1, low), x, y)
            for t, r in enumerate(rows):
                a[r, low + 1], a[r, low] = z[t], y[t]

    def _rotation(self, sweep: int, i: Expr) -> tuple[Expr, Expr]:
        """Return what `rotated` asks for."""
        k, place = self.k, fold(self.n * sweep + i)
        half = k.let(self.rotations.half[place], "half")
        return half, k.let(-self.rotations.s[place], "s")

    # the root-free form, for values only

    def _sweep_squares(self) -> None:
        """Do one sweep of the root-free form, in which e holds squares."""
        self._bound()
        k, block = self.k, self._taken()
        zero, one = Const(0, self.real), Const(1, self.real)
        e0 = k.let(sqrt(where(block.e0 > 0, block.e0, one)), "e0")
        sigma = k.let(self._shift(block, e0), "sigma")
        gamma = k.variable(block.last - sigma, "gamma")
        p = k.variable(gamma[()] * gamma[()], "p")
        c, s = k.variable(one, "c"), k.variable(zero, "s")
        low, top = k.let(self.low[()], "low"), self.n - 1
        d_up, e_up = k.variable(self.d[top], "d_up"), k.variable(zero, "e_up")
        above = k.variable(zero, "above")
        for i in self.a.down(top, low):
            active, both = self._is_active(i, block)
            e, d = k.let(self.e[i], "e"), k.let(self.d[i], "d")
            r = k.let(where(active, p[()] + e, one), "r")
            inverse = k.let(1 / r, "inverse")
            flat = k.let(p[()].eq(0), "flat")
            ratio = k.let(r / where(flat, one, p[()]), "ratio")
            e_new = where(both, s[()] * r, e_up[()])
            c1, s1 = k.let(p[()] * inverse, "c1"), k.let(e * inverse, "s1")
            g1 = k.let(fma(c1, d - sigma, -(s1 * gamma[()])), "g1")
            d_new = k.let(where(active, gamma[()] + (d - g1), d_up[()]), "d_new")
            self._keep(i + 1, d_new, e_new, above)
            p1 = k.let(where(flat, c[()] * e, g1 * g1 * ratio), "p1")
            d_up.set(where(active, sigma + g1, d))
            e_up.set(where(active, s1 * p1, e))
            for ref, value in ((gamma, g1), (p, p1), (c, c1), (s, s1)):
                ref.set(where(active, value, ref[()]))
        self._keep(low, d_up[()], e_up[()], above)


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
