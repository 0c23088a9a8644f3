"""Rows made orthogonal by plane rotations, the longer one first (one-sided Jacobi).

J. Demmel, K. Veselic, Jacobi's method is more accurate than QR, SIAM J. Matrix Anal.
Appl. 13 (1992) 1204-1245. P. P. M. de Rijk, A one-sided Jacobi algorithm for computing
the singular value decomposition on a vector computer, SIAM J. Sci. Stat. Comput. 10
(1989) 359-371 (the sorting).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.functions import (
    abs_squared,
    absolute,
    any_lane,
    cast,
    conj,
    fma,
    imag,
    make_complex,
    maximum,
    minimum,
    real,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, as_expr
from batchlas._kernels.rows import STEP
from batchlas._kernels.svd_scaling import NOTHING, times

if TYPE_CHECKING:
    from batchlas._kernels.rows import Cells, Place, Rows

SWEEPS = 30
"""Sweeps after which a matrix counts as not converged; about 10 are needed."""
_EPS = {DType.FLOAT32: 2.0**-23, DType.FLOAT64: 2.0**-52}
# The smallest number that has an inverse.
_NORMAL = {DType.FLOAT32: 2.0**-126, DType.FLOAT64: 2.0**-1022}
# From here on 1 + x^2 is x^2, which may overflow.
_LARGE = {DType.FLOAT32: 2.0**14, DType.FLOAT64: 2.0**28}


class Rotations:
    """Rotates the rows of the square `x`, and the rows of `q` along with them.

    All lanes make as many sweeps as the slowest needs: where nothing is left to do, a
    rotation is the identity. `squares` becomes the squared norms of the rows.
    """

    def __init__(
        self, x: Rows, squares: Cells, n: Place, q: tuple[Rows, Place] | None
    ) -> None:
        self.x, self.squares, self.n, self.q, self.k = x, squares, n, q, x.k
        self.real = x.dtype.real
        self.moved = self.k.register("moved", self.real)
        self.sweep = self.k.register("sweep", INDEX)

    def write(self) -> Expr:
        """Write the sweeps; return whether a lane's rows are not orthogonal yet."""
        k = self.k
        self.sweep.set(0)
        with k.repeat() as sweeps:
            for p in self.x.loop(0, self.n, "p"):
                self.squares[p] = real(dot(self.x, p, p, self.n))
            self.moved.set(0)
            for p in self.x.loop(0, self.n - 1, "p"):
                for q in self.x.loop(p + 1, self.n, "q"):
                    self._pair(p, q)
            self.sweep.set(self.sweep[()] + 1)
            moved = any_lane(self.moved[()] > 0)
            sweeps.again_while(moved & (self.sweep[()] < SWEEPS))
        return self.moved[()] > 0

    def _pair(self, p: Place, q: Place) -> None:
        """Rotate two rows where they are not orthogonal or in the wrong order."""
        k = self.k
        a, b = k.let(self.squares[p], "a"), k.let(self.squares[q], "b")
        product = k.let(dot(self.x, p, q, self.n), "g")
        size, phase = self._polar(product)
        # Rows whose product is no normal number count as zero, one of them at least.
        skew = k.let(
            (absolute(size) >= _NORMAL[self.real])
            & (size / a * size > b * self._tolerance()),
            "skew",
        )
        swap = k.let(a < b, "swap")
        moves = k.let(skew | swap, "moves")
        with k.guard(any_lane(moves)):
            tangent = k.let(where(skew, self._tangent(a, b, size), 0.0), "t")
            cosine = k.let(1.0 / sqrt(fma(tangent, tangent, 1.0)), "c0")
            sine = k.let(cosine * tangent, "s0")
            c = k.let(where(swap, sine, cosine), "c")
            s = k.let(where(swap, -cosine, sine), "s")
            if phase is not None:
                one = make_complex(Const(1, self.real), 0)
                s = k.let(times(where(skew, phase, one), s), "s")
            rotate(self.x, p, q, self.n, c, s)
            if self.q is not None:
                rotate(self.q[0], p, q, self.q[1], c, s)
            change = k.let(tangent * size, "change")
            first = k.let(maximum(a - change, 0.0), "first")
            second = k.let(maximum(b + change, 0.0), "second")
            self.squares[p] = where(swap, second, first)
            self.squares[q] = where(swap, first, second)
            self.moved.set(where(moves, 1.0, self.moved[()]))

    def _tolerance(self) -> Expr:
        """Return the square of sqrt(n) eps, the cosine of what counts as orthogonal."""
        return cast(as_expr(self.n, INDEX), self.real) * _EPS[self.real] ** 2

    def _polar(self, product: Expr) -> tuple[Expr, Expr | None]:
        """Return modulus and, for complex numbers, phase; no square overflows."""
        k = self.k
        if not product.dtype.is_complex:
            return product, None
        re, im = k.let(absolute(real(product)), "re"), k.let(absolute(imag(product)))
        large, small = k.let(maximum(re, im), "g"), minimum(re, im)
        safe = k.let(where(large > 0, large, 1.0), "g")
        ratio = k.let(small / safe, "r")
        size = k.let(large * sqrt(fma(ratio, ratio, 1.0)), "g")
        inverse = k.let(1.0 / where(size > 0, size, 1.0), "r")
        return size, k.let(times(product, inverse), "phase")

    def _tangent(self, a: Expr, b: Expr, product: Expr) -> Expr:
        """Return the tangent of the smaller angle that makes two rows orthogonal."""
        k = self.k
        cot = k.let((b - a) / (product + product), "cot")
        size = k.let(absolute(cot), "z")
        root = sqrt(fma(size, size, 1.0))
        root = where(size > _LARGE[self.real], size, root)
        tangent = k.let(1.0 / (size + root), "t")
        return where(cot < 0, -tangent, tangent)

    # afterwards

    def normalise(self) -> None:
        """Divide the rows by their norms; complete those that are zero."""
        k = self.k
        for p in self.x.loop(0, self.n, "p"):
            square = k.let(self.squares[p], "a")
            missing = k.let(square < NOTHING[self.real], "missing")
            inverse = k.let(1.0 / sqrt(where(missing, 1.0, square)), "inverse")
            scale(self.x, p, self.n, inverse)
            with k.guard(any_lane(missing)):
                Completion(self.x, self.n, missing).write(p)


class Completion:
    """Replaces a row, in the lanes where it is missing, by one orthogonal to others."""

    def __init__(self, x: Rows, n: Place, missing: Expr) -> None:
        self.x, self.n, self.k, self.missing = x, n, x.k, missing
        self.real = x.dtype.real

    def write(self, p: Place) -> None:
        """Take the axis farthest from the rows before, less its parts along them."""
        k, x, missing = self.k, self.x, self.missing
        best = k.let(self._farthest(p), "farthest")
        one, zero = Const(1, x.dtype), Const(0, x.dtype)
        for i in x.loop(0, self.n):
            here = self._number(i).eq(best)
            x[p, i] = where(missing, where(here, one, zero), x[p, i])
        for _ in range(2):
            for r in x.loop(0, p, "r"):
                part = k.let(where(missing, dot(x, p, r, self.n), zero), "part")
                for i in x.loop(0, self.n):
                    x[p, i] = fma(-part, x[r, i], x[p, i])
        norm = k.let(real(dot(x, p, p, self.n)), "norm")
        scale(x, p, self.n, k.let(where(missing, 1.0 / sqrt(norm), 1.0), "inverse"))

    def _farthest(self, p: Place) -> Expr:
        """Return the number of the axis with the least part in the rows before p."""
        k, x = self.k, self.x
        least, best = k.register("least", self.real), k.register("best", self.real)
        total = k.register("total", self.real)
        least.set(2)
        best.set(0)
        for i in x.loop(0, self.n):
            total.set(0)
            for r in x.loop(0, p, "r"):
                total.set(total[()] + abs_squared(k.let(x[r, i], "x")))
            nearer = k.let(total[()] < least[()], "nearer")
            best.set(where(nearer, self._number(i), best[()]))
            least.set(where(nearer, total[()], least[()]))
        return best[()]

    def _number(self, i: Place) -> Expr:
        return cast(as_expr(i, INDEX), self.real)


def dot(x: Rows, p: Place, q: Place, n: Place) -> Expr:
    """Return the product of row p and the adjoint of row q, in `STEP` sums."""
    sums = [x.k.register(f"sum{e}", x.dtype) for e in range(STEP)]
    for sum_ in sums:
        sum_.set(0)
    for places in x.steps(n):
        for sum_, i in zip(sums, places, strict=False):
            sum_.set(fma(x[p, i], conj(x[q, i]), sum_[()]))
    a, b, c, d = (sum_[()] for sum_ in sums)
    return (a + b) + (c + d)


def rotate(x: Rows, p: Place, q: Place, n: Place, c: Expr, s: Expr) -> None:
    """Replace rows p and q by c p - s q and conj(s) p + c q."""
    for places in x.steps(n):
        for i in places:
            one, other = x.k.let(x[p, i], "xp"), x.k.let(x[q, i], "xq")
            x[p, i] = combined(one, c, other, -s)
            x[q, i] = combined(other, c, one, conj(s))


def combined(x: Expr, c: Expr, y: Expr, s: Expr) -> Expr:
    """Return c x + s y for a real c."""
    if not x.dtype.is_complex:
        return fma(c, x, s * y)
    re = fma(c, real(x), fma(real(s), real(y), -(imag(s) * imag(y))))
    im = fma(c, imag(x), fma(real(s), imag(y), imag(s) * real(y)))
    return make_complex(re, im)


def scale(x: Rows, p: Place, n: Place, factor: Expr) -> None:
    """Multiply a row by a real number."""
    for places in x.steps(n):
        for i in places:
            x[p, i] = times(x[p, i], factor)
