"""Eigenvalues and vectors by a tridiagonal matrix: the kernel of the family ``ql``.

A thread holds its matrices in registers, one per lane of a vector, and works on them in
place: Householder's reduction, implicit QL, then the columns in the order of the
eigenvalues. The order of the matrices is an argument, so one kernel serves all orders
that its arrays have room for.
"""

from __future__ import annotations

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import (
    any_lane,
    cast,
    imag,
    make_complex,
    real,
    where,
)
from batchlas._kernels.ir import INDEX, Const, DType, Expr, Kernel
from batchlas._kernels.ql import Iteration, sort
from batchlas._kernels.scaling import Scale
from batchlas._kernels.tridiagonal import Matrix, Reduction, scaled


def syev_ql(dtype: DType, capacity: int, multiple_of: int, *, vectors: bool) -> Kernel:
    """Return the kernel, unscheduled.

    Parameters
    ----------
    dtype : DType
        Real or complex floating point.
    capacity : int
        The largest order.
    multiple_of : int
        What divides the batch of every launch.
    vectors : bool
        Whether eigenvectors are computed, or eigenvalues alone.

    Returns
    -------
    Kernel
        Arguments ``nb, n, step, row, column, turn, a, w, v, info``, without v if there
        are no vectors: the batch; the order; how far rows are apart in registers, odd;
        how far elements of the triangle that is read are apart in the array, by row and
        by column of the lower one, and what to multiply their imaginary parts by; the
        packed input and results; and 1 for a matrix that is not finite or does not
        converge, else 0.
    """
    return _Syev(dtype, capacity, multiple_of, vectors=vectors).kernel()


class _Syev:
    """The parts of the kernel, in the order in which they are written."""

    def __init__(
        self, dtype: DType, capacity: int, multiple_of: int, *, vectors: bool
    ) -> None:
        self.dtype, self.real, self.vectors = dtype, dtype.real, vectors
        k = self.k = KernelBuilder(f"syev_ql_{dtype.value}_{'V' if vectors else 'N'}")
        nb = self.nb = k.scalar("nb", multiple_of=multiple_of)
        n = self.n = k.scalar("n")
        self.step = k.scalar("step")
        self.row, self.column = k.scalar("row"), k.scalar("column")
        self.turn = k.scalar("turn", dtype.real)
        self.input = k.array("a", dtype, (nb, n * n))
        self.w = k.array("w", dtype.real, (nb, n))
        if vectors:
            self.v = k.array("v", dtype, (nb, n * n))
        self.info = k.array("info", DType.INT32, (nb,))
        cells = k.register("q", dtype, (capacity * (capacity + 1),))
        self.a = Matrix(k, cells, n, self.step)
        self.t = Reduction(self.a, capacity, vectors=vectors)
        self.iteration = Iteration(self.t, capacity)
        if vectors:
            self.order = k.register("order", INDEX, (capacity,))

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        k = self.k
        with k.weak(self.nb, "b") as self.b:
            inverse, poison = self._read()
            self.t.write()
            failed = self.iteration.write()
            self._write(inverse, poison)
            bad = k.let(failed | ~poison.eq(0), "bad")
            k.store(self.info, self.b, cast(bad, DType.INT32))
        return k.finish()

    def _read(self) -> tuple[Expr, Expr]:
        """Read the triangle, scaled; return the inverse scale and the poison."""
        k, a = self.k, self.a
        scale = Scale(k, self.real)
        for i in a.loop(0, self.n):
            for j in a.loop(0, i):
                a[i, j] = self._element(i, j, scale)
            x = real(k.let(self.input[self.b, i * (self.row + self.column)], "x"))
            scale.look(x)
            a[i, i] = make_complex(x, 0) if self.dtype.is_complex else x
        factor, inverse, poison = scale.settle()
        with k.guard(k.let(any_lane(factor.ne(1)), "some")):
            zero = Const(0, self.dtype)
            bad = k.let(factor.eq(0), "bad")
            for i in a.loop(0, self.n):
                for j in a.loop(0, i + 1):
                    a[i, j] = where(bad, zero, scaled(a[i, j], factor))
        return inverse, poison

    def _element(self, i: Expr, j: Expr, scale: Scale) -> Expr:
        """Read an element below the diagonal."""
        k = self.k
        x = k.let(self.input[self.b, i * self.row + j * self.column], "x")
        scale.look(real(x))
        if not self.dtype.is_complex:
            return x
        im = k.let(imag(x) * self.turn, "im")
        scale.look(im)
        return make_complex(real(x), im)

    def _write(self, inverse: Expr, poison: Expr) -> None:
        """Write the eigenvalues and vectors in order; NaN where the poison is.

        Adding zero makes all zeros positive: which sign they have may depend on how
        long the other lanes went on.
        """
        k, a, d = self.k, self.a, self.t.d
        order = self.order if self.vectors else None
        if order is not None:
            for i in a.loop(0, self.n):
                order[i] = i
        sort(k, a, d, order)
        for i in a.loop(0, self.n):
            self.w[self.b, i] = k.let(d[i] * inverse + poison, "y")
        if order is None:
            return
        for i in a.loop(0, self.n):
            for j in a.loop(0, self.n):
                x = k.let(a[i, order[j]], "x")
                y = real(x) + poison
                if self.dtype.is_complex:
                    y = make_complex(y, imag(x) + poison)
                self.v[self.b, i * self.n + j] = k.let(y, "y")
