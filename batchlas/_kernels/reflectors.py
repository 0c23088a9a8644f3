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
    from batchlas._kernels.scratch import Scratch

    # Where element i of reflector c stands.
    Where = Callable[[Expr, Expr], tuple[Expr, Expr]]


class Reflectors(NamedTuple):
    """Reflectors whose vectors stand in a matrix, each with 1 in front left out.

    `v` is room for the vector at hand, `next` for another one. Reflector c begins
    `behind` element c.
    """

    x: Matrix
    at: Where
    v: Vector
    next: Vector
    tau: Vector
    behind: int


def in_column(c: Expr, i: Expr) -> tuple[Expr, Expr]:
    """Return the place of element i of column c."""
    return i, c


def in_row(c: Expr, j: Expr) -> tuple[Expr, Expr]:
    """Return the place of element j of row c."""
    return c, j


def reflectors(
    scratch: Scratch, x: Matrix, at: Where, length: Expr, count: Expr
) -> Reflectors:
    """Return the reflectors of a matrix, with room for `count` of them."""
    v, following = (scratch.vector(length, x.dtype) for _ in range(2))
    tau = scratch.vector(count, x.dtype)
    return Reflectors(x, at, v, following, tau, 0 if at is in_column else 1)


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
    k = q.k
    _set_identity(q, rows, length)
    for t in loop(k, 0, count, "t"):
        _apply_one(of, count - 1 - t, q, rows, length)


def form_in_pairs(
    of: Reflectors, count: Expr, q: Matrix, rows: Expr, length: Expr
) -> None:
    """Do what `form` does by two reflectors at a time: for orders beyond the caches."""
    k = q.k
    _set_identity(q, rows, length)
    with k.guard((count % 2).eq(1)):
        _apply_one(of, count - 1, q, rows, length)
    for t in loop(k, 0, count // 2, "t"):
        _apply_two(of, count // 2 * 2 - 1 - t * 2, q, rows, length)


def _set_identity(q: Matrix, rows: Expr, length: Expr) -> None:
    one, zero = Const(1, q.dtype), Const(0, q.dtype)
    for r in loop(q.k, 0, rows, "r"):
        for i in loop(q.k, 0, length):
            q[r, i] = zero
        q[r, r] = one


def _apply_one(of: Reflectors, c: Expr, q: Matrix, rows: Expr, length: Expr) -> None:
    """Multiply the rows of `q` by the adjoint of reflector c from the right."""
    k, v = q.k, of.v
    first, tau = _unpack(of, c, v, length)
    for block in blocks(k, first, rows):
        sums = zeros(k, "w", q.dtype, len(block))
        for i in loop(k, first, length):
            y = k.let(v[i], "y")
            for sum_, r in zip(sums, block, strict=True):
                sum_.set(fma(q[r, i], y, sum_[()]))
        ws = [k.let(tau * sum_[()], "w") for sum_ in sums]
        for i in loop(k, first, length):
            y = k.let(conj(v[i]), "v")
            for w, r in zip(ws, block, strict=True):
                q[r, i] = fma(w, y, q[r, i])


def _apply_two(of: Reflectors, c: Expr, q: Matrix, rows: Expr, length: Expr) -> None:
    """Multiply by the adjoint of reflector c, then by that of the one before it.

    Both go in one pass, so that each element is loaded and stored once.
    """
    k, u, v = q.k, of.v, of.next
    start, early = _unpack(of, c - 1, u, length)
    first, late = _unpack(of, c, v, length)
    v[start] = Const(0, q.dtype)
    cross = zeros(k, "cross", q.dtype, 1)[0]
    for i in loop(k, first, length):
        cross.set(fma(conj(k.let(v[i], "v")), u[i], cross[()]))
    for block in blocks(k, start, rows):
        sums, others = (zeros(k, name, q.dtype, len(block)) for name in ("w", "o"))
        for i in loop(k, start, length):
            x, y = k.let(u[i], "u"), k.let(v[i], "v")
            for sum_, other, r in zip(sums, others, block, strict=True):
                z = k.let(q[r, i], "q")
                sum_.set(fma(z, y, sum_[()]))
                other.set(fma(z, x, other[()]))
        ws = [k.let(late * sum_[()], "w") for sum_ in sums]
        pairs = zip(ws, others, strict=True)
        os = [k.let(early * fma(w, cross[()], o[()]), "o") for w, o in pairs]
        for i in loop(k, start, length):
            x, y = k.let(conj(u[i]), "u"), k.let(conj(v[i]), "v")
            for w, o, r in zip(ws, os, block, strict=True):
                q[r, i] = fma(o, x, fma(w, y, q[r, i]))


def _unpack(of: Reflectors, c: Expr, v: Vector, length: Expr) -> tuple[Expr, Expr]:
    """Copy the vector of reflector c; return where it begins, and its factor."""
    k = of.x.k
    first = k.let(c + of.behind, "first")
    for i in loop(k, first + 1, length):
        v[i] = of.x[of.at(c, i)]
    v[first] = Const(1, of.x.dtype)
    return first, k.let(-conj(of.tau[c]), "tau")


def zeros(k: KernelBuilder, name: str, dtype: DType, count: int) -> list[Ref]:
    """Return registers set to zero, for sums."""
    sums = [k.register(f"{name}_sum{e}", dtype) for e in range(count)]
    for sum_ in sums:
        sum_.set(0)
    return sums
