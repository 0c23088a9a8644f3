"""Eigenvalues and eigenvectors by cyclic Jacobi: the kernel of the family ``jacobi``.

For the smallest orders, where every element of a matrix has a register of its own and
all loops but the one over sweeps are written out. A pair is rotated as long as its
off-diagonal element counts beside the geometric mean of its diagonal elements; sweeps
end when no pair of any lane does. A lane that is done goes along unchanged.

One rotation solves a matrix of order 2, and none one of order 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import (
    abs_squared,
    absolute,
    any_lane,
    cast,
    conj,
    fma,
    imag,
    make_complex,
    real,
    sqrt,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Kernel
from batchlas._kernels.scaling import RANGES, Scale
from batchlas._kernels.tridiagonal import multiply_add, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator


PAIRS = {
    1: (),
    2: ((0, 1),),
    3: ((0, 1), (0, 2), (1, 2)),
    4: ((0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)),
}
"""Pairs of a sweep in order; neighbours that are apart can be rotated at once."""
SWEEPS = 30
"""Sweeps before a matrix is given up; five are usual."""


def syev_jacobi(
    n: int,
    dtype: DType,
    uplo: str,
    conjugated: bool,
    run: int,
    multiple_of: int,
    *,
    vectors: bool,
) -> Kernel:
    """Return the kernel, unscheduled.

    Parameters
    ----------
    n : int
        Order, 1 to `JACOBI_LARGEST`.
    dtype : DType
        Real or complex floating point.
    uplo : {"L", "U"}
        Triangle that is read.
    conjugated : bool
        Whether it holds the conjugates of the lower triangle.
    run : int
        Consecutive elements that are read and written together.
    multiple_of : int
        What divides the batch of every launch.
    vectors : bool
        Whether eigenvectors are computed, or eigenvalues alone.

    Returns
    -------
    Kernel
        Arguments ``nb, a, w, v, info``, without v if there are no vectors: the batch,
        the packed input and results, and 1 for a matrix that is not finite or does not
        converge, else 0.
    """
    return _Jacobi(
        n, dtype, uplo, conjugated, run, multiple_of, vectors=vectors
    ).kernel()


class _Jacobi:
    """The parts of the kernel, in the order in which they are written."""

    def __init__(
        self,
        n: int,
        dtype: DType,
        uplo: str,
        conjugated: bool,
        run: int,
        multiple_of: int,
        *,
        vectors: bool,
    ) -> None:
        self.n, self.dtype, self.run = n, dtype, run
        self.uplo, self.conjugated = uplo, conjugated
        self.real, self.known = dtype.real, RANGES[dtype.real]
        job = "V" if vectors else "N"
        k = self.k = KernelBuilder(f"syev_jacobi_{uplo}{n}_{dtype.value}_{job}")
        nb = self.nb = k.scalar("nb", multiple_of=multiple_of)
        self.input = k.array("a", dtype, (nb, n, n))
        self.output = k.array("w", dtype.real, (nb, n), streams=True)
        if vectors:
            self.vectors = k.array("v", dtype, (nb, n, n), streams=True)
        self.info = k.array("info", DType.INT32, (nb,))
        self.d = [k.register(f"d{i}", dtype.real) for i in range(n)]
        lower = [(i, j) for i in range(n) for j in range(i)]
        self.a = {(i, j): k.register(f"a{i}{j}", dtype) for i, j in lower}
        every = [(i, j) for i in range(n) for j in range(n)] if vectors else []
        self.v = {(i, j): k.register(f"v{i}{j}", dtype) for i, j in every}

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        k = self.k
        with k.weak(self.nb, "b") as self.b:
            inverse, poison = self._read()
            failed = self._iterate()
            for j in reversed(range(self.n)):
                for i in range(j):
                    self._order(i)
            self._write(inverse, poison)
            bad = ~poison.eq(0) if failed is None else failed | ~poison.eq(0)
            k.store(self.info, self.b, cast(k.let(bad, "bad"), DType.INT32))
        return k.finish()

    # the matrix in

    def _read(self) -> tuple[Expr, Expr]:
        """Read the triangle, scaled; return the inverse scale and the poison."""
        k, n = self.k, self.n
        scale = Scale(k, self.real)
        found: dict[tuple[int, int], Expr] = {}
        for places in runs(n * n, self.run):
            at = [divmod(e, n) for e in places]
            found.update({p: k.let(self.input[(self.b, *p)], "x") for p in at})
        for i in range(n):
            scale.look(real(found[i, i]))
        lower = {
            (i, j): found[(i, j) if self.uplo == "L" else (j, i)] for i, j in self.a
        }
        for x in lower.values():
            scale.look(real(x))
            if self.dtype.is_complex:
                scale.look(imag(x))
        factor, inverse, poison = scale.settle()
        bad, zero = k.let(factor.eq(0), "bad"), Const(0, self.dtype)
        for i in range(n):
            self.d[i].set(where(bad, real(zero), real(found[i, i]) * factor))
        for (i, j), x in lower.items():
            y = scaled(conj(x) if self.conjugated else x, factor)
            self.a[i, j].set(where(bad, zero, y))
        for (i, j), ref in self.v.items():
            ref.set(Const(float(i == j), self.dtype))
        return inverse, poison

    # the sweeps

    def _iterate(self) -> Expr | None:
        """Write the sweeps; return whether a lane's matrix has not converged."""
        k, pairs = self.k, PAIRS[self.n]
        if self.n <= 2:
            for p, q in pairs:
                self._rotate(p, q)
            return None
        sweeps = k.register("sweeps", INDEX)
        sweeps.set(0)
        open_ = k.register("open", self.real)
        with k.repeat() as again:
            for p, q in pairs:
                self._rotate(p, q)
            some: Expr | None = None
            for p, q in pairs:
                counts = ~self._is_negligible(p, q)
                some = counts if some is None else some | counts
            assert some is not None
            some = k.let(some, "some")
            open_.set(where(some, Const(1, self.real), 0))
            sweeps.set(sweeps[()] + 1)
            again.again_while(any_lane(some) & (sweeps[()] < SWEEPS))
        return open_[()] > 0

    def _is_negligible(self, p: int, q: int) -> Expr:
        square = abs_squared(self.a[q, p][()])
        mean = absolute(self.d[p][()] * self.d[q][()])
        return (square <= mean * self.known.eps**2) | (square <= self.known.tiny)

    def _rotate(self, p: int, q: int) -> None:
        """Make the element at (q, p) zero, if it counts.

        With x = |d| + h, y = 2 a and h = sqrt(d^2 + 4 |a|^2) the cosine is to the sine
        as x is to y, and x^2 + |y|^2 = 2 h x: one division and two roots.
        """
        k = self.k
        idle = k.let(self._is_negligible(p, q), "idle")
        zero, one = Const(0, self.real), Const(1, self.real)
        a = k.let(conj(self.a[q, p][()]), "a")
        d = k.let(self.d[q][()] - self.d[p][()], "d")
        sign = k.let(where(d < 0, -one, one), "sign")
        square = k.let(4 * abs_squared(a), "square")
        h = k.let(sqrt(where(idle, one, fma(d, d, square))), "h")
        x = k.let(where(idle, one, h + absolute(d)), "x")
        inverse = k.let(1 / sqrt(2 * h * x), "inverse")
        shift = k.let(
            where(idle, zero, sign * square * (h * inverse * inverse)), "shift"
        )
        c = k.let(where(idle, one, x * inverse), "c")
        factor = k.let(where(idle, zero, 2 * sign * inverse), "factor")
        s = k.let(scaled(a, factor), "s")
        self.d[p].set(self.d[p][()] - shift)
        self.d[q].set(self.d[q][()] + shift)
        self.a[q, p].set(where(idle, self.a[q, p][()], Const(0, self.dtype)))
        for r in range(self.n):
            if r not in (p, q):
                x_p, x_q = self._mix(self._at(r, p), self._at(r, q), c, s)
                self._put(r, p, x_p)
                self._put(r, q, x_q)
        for r in range(self.n) if self.v else ():
            v_p, v_q = self.v[r, p], self.v[r, q]
            x_p, x_q = self._mix(v_p[()], v_q[()], c, s)
            v_p.set(x_p)
            v_q.set(x_q)

    def _mix(self, x: Expr, y: Expr, c: Expr, s: Expr) -> tuple[Expr, Expr]:
        """Return c x - conj(s) y and s x + c y, both computed before either is set."""
        k = self.k
        x, y = k.let(x, "x"), k.let(y, "y")
        first = multiply_add(-conj(s), y, scaled(x, c))
        second = multiply_add(s, x, scaled(y, c))
        return k.let(first, "first"), k.let(second, "second")

    def _at(self, i: int, j: int) -> Expr:
        return self.a[i, j][()] if i > j else conj(self.a[j, i][()])

    def _put(self, i: int, j: int, value: Expr) -> None:
        if i > j:
            self.a[i, j].set(value)
        else:
            self.a[j, i].set(conj(value))

    # the results out

    def _order(self, i: int) -> None:
        """Exchange the pairs i and i + 1 where they are out of order."""
        k = self.k
        swap = k.let(self.d[i + 1][()] < self.d[i][()], "swap")
        pairs = [(self.d[i], self.d[i + 1])]
        if self.v:
            pairs += [(self.v[r, i], self.v[r, i + 1]) for r in range(self.n)]
        for one, other in pairs:
            x, y = k.let(one[()], "x"), k.let(other[()], "y")
            one.set(where(swap, y, x))
            other.set(where(swap, x, y))

    def _write(self, inverse: Expr, poison: Expr) -> None:
        """Write the results, NaN where the poison is; adding zero makes zeros positive.

        Which sign a zero has may depend on how long the other lanes went on.
        """
        k, n = self.k, self.n
        for places in runs(n, self.run):
            values = [k.let(self.d[i][()] * inverse + poison, "y") for i in places]
            for i, y in zip(places, values, strict=True):
                self.output[self.b, i] = y
        for places in runs(n * n, self.run) if self.v else ():
            at = [divmod(e, n) for e in places]
            values = [k.let(self._poisoned(self.v[p][()], poison), "y") for p in at]
            for (i, j), y in zip(at, values, strict=True):
                self.vectors[self.b, i, j] = y

    def _poisoned(self, x: Expr, poison: Expr) -> Expr:
        if not self.dtype.is_complex:
            return x + poison
        return make_complex(real(x) + poison, imag(x) + poison)


def runs(count: int, run: int) -> Iterator[range]:
    """Yield the numbers below count in runs; the last one may be shorter."""
    for first in range(0, count, run):
        yield range(first, min(first + run, count))
