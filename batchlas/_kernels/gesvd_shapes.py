"""SVD of matrices of any shape, one per lane: by bidiagonalisation or by rotations.

The shape is an argument, so that one kernel serves all; matrices live in scratch
memory. Wide ones are decomposed as their adjoints. The method is one of

- ``bidiagonal``: reflectors make the matrix bidiagonal, QR iterations diagonal.
- ``jacobi``: rotations make the rows of the triangular factor of a QR factorisation
  with column pivoting orthogonal. They are closer to that than the matrix's own rows
  (Z. Drmac, K. Veselic, New fast and accurate Jacobi SVD algorithm I, SIAM J. Matrix
  Anal. Appl. 29 (2008) 1322-1342).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from batchlas._kernels.bidiagonal import Reduction
from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import conj, sqrt, where
from batchlas._kernels.golub_kahan import Iteration
from batchlas._kernels.householder import Elimination
from batchlas._kernels.ir import Const, DType, Expr, Kernel
from batchlas._kernels.rotations import Rotations
from batchlas._kernels.scratch import Scratch, loop
from batchlas._kernels.svd_scaling import Scaling

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.scratch import Matrix, Vector


class _Result(NamedTuple):
    """What a method leaves in scratch memory.

    The rows of `left` are the conjugated singular vectors of the tall side, those of
    `right` the adjoint of the other side's; `failed` says which lanes did not converge.
    """

    values: Vector
    left: Matrix | None
    right: Matrix | None
    failed: Expr


def gesvd(
    method: str, dtype: DType, width: int, *, vectors: bool, wide: bool
) -> Kernel:
    """Return the kernel, unscheduled; its axis ``b`` is meant for vector lanes.

    Parameters
    ----------
    method : {"bidiagonal", "jacobi"}
    dtype : DType
        Real or complex floating point.
    width : int
        Matrices per vector.
    vectors : bool
        Whether U and Vh are computed.
    wide : bool
        Whether matrices have more columns than rows.

    Returns
    -------
    Kernel
        Arguments ``nb, m, n, columns, reals, scratch, a, s, u, vh, info``; u and vh
        only with vectors. nb is the batch, a multiple of the width; m >= n the shape,
        of the adjoint for wide matrices; `columns` of the tall side's vectors are
        computed; scratch is memory for `reals` numbers per matrix (see `singular`).
        All arrays are packed; info is 1 for a matrix that holds NaN or infinity or did
        not converge, else 0.
    """
    return _Gesvd(method, dtype, width, vectors=vectors, wide=wide).kernel()


class _Gesvd:
    """The parts of the kernel, in the order in which they are written."""

    def __init__(
        self, method: str, dtype: DType, width: int, *, vectors: bool, wide: bool
    ) -> None:
        self.dtype, self.width, self.vectors, self.wide = dtype, width, vectors, wide
        self.method = self._bidiagonal if method == "bidiagonal" else self._jacobi
        job = "vectors" if vectors else "values"
        shape = "wide" if wide else "tall"
        k = self.k = KernelBuilder(f"gesvd_{method}_{job}_{shape}_{dtype.value}")
        nb = k.scalar("nb", multiple_of=width)
        self.groups = nb // width
        self.m, self.n = k.scalar("m"), k.scalar("n")
        self.columns, self.reals = k.scalar("columns"), k.scalar("reals")
        memory = (self.groups, self.reals, width)
        self.memory = k.array("scratch", dtype.real, memory)
        self.a = k.array("a", dtype, (nb, self.m * self.n))
        self.s = k.array("s", dtype.real, (nb, self.n))
        if vectors:
            square, tall = self.n * self.n, self.m * self.columns
            sizes = (square, tall) if wide else (tall, square)
            self.u = k.array("u", dtype, (nb, sizes[0]))
            self.vh = k.array("vh", dtype, (nb, sizes[1]))
        self.info = k.array("info", DType.INT32, (nb,))

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        k = self.k
        with k.weak(self.groups, "g") as g, k.weak(self.width, "b") as lane:
            self.b = g * self.width + lane
            self._body(Scratch(k, self.memory, g, lane))
        return k.finish()

    def _body(self, scratch: Scratch) -> None:
        k = self.k
        x = scratch.matrix(self.m, self.n, self.dtype)
        self._read(x)
        scaling = Scaling(k, self.dtype, partial(self._each, x))
        scaling.write()
        values, left, right, failed = self.method(scratch, x)
        for i in loop(k, 0, self.n):
            self.s[self.b, i] = scaling.undone(values[i])
        one, zero = Const(1, DType.INT32), Const(0, DType.INT32)
        self.info[self.b] = where(failed | scaling.is_bad(), one, zero)
        if left is not None and right is not None:
            self._write(left, right)

    def _bidiagonal(self, scratch: Scratch, x: Matrix) -> _Result:
        m, n = self.m, self.n
        reduction = Reduction(scratch, x, m, n)
        reduction.write()
        left = right = q = p = None
        parts = 2 if self.dtype.is_complex else 1
        if self.vectors:
            left = scratch.matrix(self.columns, m, self.dtype)
            right = scratch.matrix(n, n, self.dtype)
            reduction.form_left(left, self.columns)
            reduction.form_right(right)
            q, p = (left.as_reals(), m * parts), (right.as_reals(), n * parts)
        iteration = Iteration(scratch, reduction)
        failed = iteration.write(q, p)
        iteration.make_positive(p)
        iteration.sort(*(each for each in (q, p) if each is not None))
        return _Result(reduction.d, left, right, failed)

    def _jacobi(self, scratch: Scratch, x: Matrix) -> _Result:
        m, n = self.m, self.n
        elimination = Elimination(scratch, x, m, n)
        elimination.write()
        left = None
        if self.vectors:
            left = scratch.matrix(self.columns, m, self.dtype)
            elimination.form(left, self.columns)
        elimination.keep_triangle()
        squares = scratch.vector(n, self.dtype.real)
        rotations = Rotations(x, squares, n, None if left is None else (left, m))
        failed = self.k.let(rotations.write(), "failed")
        if self.vectors:
            rotations.normalise()
            elimination.restore_columns()
        for i in loop(self.k, 0, n):
            squares[i] = sqrt(squares[i])
        return _Result(squares, left, x if self.vectors else None, failed)

    def _read(self, x: Matrix) -> None:
        k = self.k
        for i in loop(k, 0, self.m):
            for j in loop(k, 0, self.n, "j"):
                if self.wide:
                    x[i, j] = conj(self.a[self.b, j * self.m + i])
                else:
                    x[i, j] = self.a[self.b, i * self.n + j]

    def _each(self, x: Matrix, function: Callable[[Expr], Expr | None]) -> None:
        k = self.k
        for i in loop(k, 0, self.m):
            for j in loop(k, 0, self.n, "j"):
                value = function(k.let(x[i, j], "x"))
                if value is not None:
                    x[i, j] = value

    def _write(self, left: Matrix, right: Matrix) -> None:
        """Write the vectors; zeros positive, whatever was done for other lanes."""
        k, m, n, columns = self.k, self.m, self.n, self.columns
        if self.wide:
            for r in loop(k, 0, columns, "r"):
                for i in loop(k, 0, m):
                    self.vh[self.b, r * m + i] = left[r, i] + 0
            for i in loop(k, 0, n):
                for r in loop(k, 0, n, "r"):
                    self.u[self.b, i * n + r] = conj(right[r, i]) + 0
            return
        for i in loop(k, 0, m):
            for r in loop(k, 0, columns, "r"):
                self.u[self.b, i * columns + r] = conj(left[r, i]) + 0
        for r in loop(k, 0, n, "r"):
            for i in loop(k, 0, n):
                self.vh[self.b, r * n + i] = right[r, i] + 0
