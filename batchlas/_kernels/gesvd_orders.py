"""One-sided Jacobi SVD of the smallest square matrices, all loops written out.

A matrix and its vectors are in the registers of a thread, and the batch is across
vector lanes. There is a kernel for each order; `gesvd_shapes` serves all other shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import conj, sqrt, where
from batchlas._kernels.ir import Const, DType, Expr, Kernel
from batchlas._kernels.rotations import Rotations
from batchlas._kernels.rows import NamedRows, NamedVector
from batchlas._kernels.svd_scaling import Scaling

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.build import Ref


def gesvd(n: int, dtype: DType, run: int, multiple_of: int, *, vectors: bool) -> Kernel:
    """Return the kernel, unscheduled.

    Parameters
    ----------
    n : int
        Order of the matrices, at least 1.
    dtype : DType
        Real or complex floating point.
    run : int
        Consecutive elements that are read and written together.
    multiple_of : int
        What divides the batch of every launch.
    vectors : bool
        Whether U and Vh are computed.

    Returns
    -------
    Kernel
        Arguments ``nb, a, s, u, vh, info``, u and vh only with vectors. All are
        packed; info is 1 for a matrix that holds NaN or infinity or whose sweeps did
        not converge, else 0.
    """
    return _Gesvd(n, dtype, run, multiple_of, vectors=vectors).kernel()


class _Gesvd:
    """The parts of the kernel, in the order in which they are written."""

    def __init__(
        self, n: int, dtype: DType, run: int, multiple_of: int, *, vectors: bool
    ) -> None:
        self.n, self.dtype, self.run, self.vectors = n, dtype, run, vectors
        job = "vectors" if vectors else "values"
        k = self.k = KernelBuilder(f"gesvd_{job}_{n}_{dtype.value}")
        nb = self.nb = k.scalar("nb", multiple_of=multiple_of)
        self.a = k.array("a", dtype, (nb, n * n))
        self.s = k.array("s", dtype.real, (nb, n))
        if vectors:
            self.u = k.array("u", dtype, (nb, n * n))
            self.vh = k.array("vh", dtype, (nb, n * n))
        self.info = k.array("info", DType.INT32, (nb,))

    def kernel(self) -> Kernel:
        """Write the whole kernel."""
        k, n = self.k, self.n
        x = NamedRows(k, "x", n, self.dtype)
        q = NamedRows(k, "q", n, self.dtype) if self.vectors else None
        squares = NamedVector(k, "square", n, self.dtype.real)
        with k.weak(self.nb, "b") as self.b:
            self._read(x)
            scaling = Scaling(k, self.dtype, x.each)
            scaling.write()
            if q is not None:
                q.set_identity()
            rotations = Rotations(x, squares, n, None if q is None else (q, n))
            bad = scaling.is_bad() | rotations.write()
            one, zero = Const(1, DType.INT32), Const(0, DType.INT32)
            k.store(self.info, self.b, where(bad, one, zero))
            reals = self.run * (2 if self.dtype.is_complex else 1)
            self._write(self.s, n, reals, lambda p: scaling.undone(sqrt(squares[p])))
            if q is not None:
                rotations.normalise()
                # Zeros positive, whatever rotations of other lanes have done to them.
                self._write(
                    self.u, n * n, self.run, lambda e: conj(q[e % n, e // n]) + 0
                )
                self._write(self.vh, n * n, self.run, lambda e: x[divmod(e, n)] + 0)
        return k.finish()

    def _read(self, x: NamedRows) -> None:
        for places in self._runs(self.n**2, self.run):
            values = [self.k.let(self.a[self.b, e], "x") for e in places]
            for e, value in zip(places, values, strict=True):
                x[divmod(e, self.n)] = value

    def _write(
        self, array: Ref, size: int, run: int, element: Callable[[int], Expr]
    ) -> None:
        for places in self._runs(size, run):
            values = [self.k.let(element(e), "y") for e in places]
            for e, y in zip(places, values, strict=True):
                array[self.b, e] = y

    def _runs(self, size: int, run: int) -> list[list[int]]:
        """Return all places in runs of consecutive ones; the last run may overlap."""
        starts = [*range(0, size - run, run), max(size - run, 0)]
        return [list(range(start, min(start + run, size))) for start in starts]
