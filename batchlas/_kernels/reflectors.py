"""Householder reflectors I - tau v v^H in scratch memory, one set for each lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from batchlas._kernels.functions import (
    abs_squared,
    conj,
    fma,
    imag,
    make_complex,
    real,
    sqrt,
    where,
)
from batchlas._kernels.ir import Const, DType, Expr
from batchlas._kernels.scratch import Matrix, Vector, blocks, loop
from batchlas._kernels.svd_scaling import NOTHING, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.build import KernelBuilder, Ref

    # Where element i of reflector c stands.
    Where = Callable[[Expr, Expr], tuple[Expr, Expr]]


class Reflectors(NamedTuple):
    """Reflectors whose vectors stand in a matrix, each with 1 in front left out.

    `v` is room for the vector at hand. Reflector c begins `behind` element c.
    """

    x: Matrix
    at: Where
    v: Vector
    tau: Vector
    behind: int


def in_column(c: Expr, i: Expr) -> tuple[Expr, Expr]:
    """Return the place of element i of column c."""
    return i, c


def in_row(c: Expr, j: Expr) -> tuple[Expr, Expr]:
    """Return the place of element j of row c."""
    return c, j


def reflect(to: Reflectors, c: Expr, stop: Expr) -> tuple[Expr, Expr]:
    """Make reflector c of the elements that stand in its place, up to `stop`.

    Returns
    -------
    beta : Expr
        What the adjoint of the reflector makes of the elements: this real number in
        front, and zeros.
    tau : Expr
        Its factor, also kept.
    """
    x, v, k = to.x, to.v, to.x.k
    first = c + to.behind
    total = k.register("total", x.dtype.real)
    total.set(0)
    for i in loop(k, first + 1, stop):
        total.set(total[()] + abs_squared(k.let(x[to.at(c, i)], "x")))
    alpha = k.let(x[to.at(c, first)], "alpha")
    beta, factor, tau = _reflector(k, alpha, total[()])
    for i in loop(k, first + 1, stop):
        y = k.let(x[to.at(c, i)] * factor, "y")
        x[to.at(c, i)] = y
        v[i] = y
    v[first] = Const(1, x.dtype)
    to.tau[c] = tau
    return beta, tau


def _reflector(k: KernelBuilder, alpha: Expr, rest: Expr) -> tuple[Expr, Expr, Expr]:
    """Return beta, the factor of what is behind alpha, and tau.

    `rest` is the squared norm of what is behind; where all is real already and nothing
    behind, the reflector is the identity.
    """
    complex_ = alpha.dtype.is_complex
    off = k.let(rest + abs_squared(imag(alpha)) if complex_ else rest, "off")
    re = real(alpha)
    some = k.let(off > NOTHING[alpha.dtype.real], "some")
    size = k.let(sqrt(fma(re, re, off)), "size")
    beta = k.let(where(some, where(re < 0, size, -size), re), "beta")
    divisor = k.let(alpha - (make_complex(beta, 0) if complex_ else beta), "divisor")
    square = abs_squared(divisor) if complex_ else divisor
    inverse = k.let(where(some, 1.0 / where(some, square, 1.0), 0.0), "inverse")
    factor = times(conj(divisor), inverse) if complex_ else inverse
    over = k.let(where(some, -1.0 / where(some, beta, 1.0), 0.0), "over")
    return beta, k.let(factor, "factor"), k.let(times(divisor, over), "tau")


def form(of: Reflectors, count: Expr, q: Matrix, rows: Expr, length: Expr) -> None:
    """Make the rows of `q` the first rows of the adjoint of the reflectors' product.

    They are multiplied from the last one on, so that they meet the identity.
    """
    x, v, k = of.x, of.v, q.k
    one, zero = Const(1, q.dtype), Const(0, q.dtype)
    for r in loop(k, 0, rows, "r"):
        for i in loop(k, 0, length):
            q[r, i] = zero
        q[r, r] = one
    for t in loop(k, 0, count, "t"):
        c = count - 1 - t
        first = c + of.behind
        for i in loop(k, first + 1, length):
            v[i] = x[of.at(c, i)]
        v[first] = one
        tau = k.let(-conj(of.tau[c]), "tau")
        for block in blocks(k, first, rows):
            sums = zeros(k, "w", q.dtype, len(block))
            for i in loop(k, first, length):
                y = k.let(v[i], "v")
                for sum_, r in zip(sums, block, strict=True):
                    sum_.set(fma(q[r, i], y, sum_[()]))
            ws = [k.let(tau * sum_[()], "w") for sum_ in sums]
            for i in loop(k, first, length):
                y = k.let(conj(v[i]), "v")
                for w, r in zip(ws, block, strict=True):
                    q[r, i] = fma(w, y, q[r, i])


def zeros(k: KernelBuilder, name: str, dtype: DType, count: int) -> list[Ref]:
    """Return registers set to zero, for sums."""
    sums = [k.register(f"{name}_sum{e}", dtype) for e in range(count)]
    for sum_ in sums:
        sum_.set(0)
    return sums
