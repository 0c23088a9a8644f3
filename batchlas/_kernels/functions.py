"""Functions of kernel expressions, under NumPy's names where NumPy has them."""

from __future__ import annotations

from batchlas._kernels.ir import (
    Binary,
    BinaryOp,
    Cast,
    DType,
    Expr,
    Fma,
    Operand,
    Select,
    Unary,
    UnaryOp,
    as_expr,
    binary,
)


def sqrt(x: Expr) -> Expr:
    """Return the square root."""
    return Unary(UnaryOp.SQRT, x)


def rsqrt(x: Expr) -> Expr:
    """Return the reciprocal square root."""
    return Unary(UnaryOp.RSQRT, x)


def exp(x: Expr) -> Expr:
    """Return e to the power of a real x."""
    return Unary(UnaryOp.EXP, x)


def log(x: Expr) -> Expr:
    """Return the natural logarithm of a real x."""
    return Unary(UnaryOp.LOG, x)


def absolute(x: Expr) -> Expr:
    """Return the modulus; a real number also for complex x."""
    return Unary(UnaryOp.ABS, x)


def conj(x: Expr) -> Expr:
    """Return the conjugate; x itself if it is real."""
    return Unary(UnaryOp.CONJ, x) if x.dtype.is_complex else x


def real(x: Expr) -> Expr:
    """Return the real part; x itself if it is real."""
    return Unary(UnaryOp.REAL, x) if x.dtype.is_complex else x


def imag(x: Expr) -> Expr:
    """Return the imaginary part of a complex x."""
    return Unary(UnaryOp.IMAG, x)


def abs_squared(x: Expr) -> Expr:
    """Return the squared modulus, a real number."""
    if not x.dtype.is_complex:
        return x * x
    return real(x) * real(x) + imag(x) * imag(x)


def make_complex(re: Expr, im: Operand) -> Expr:
    """Return re + i*im."""
    return binary(BinaryOp.COMPLEX, re, im)


def isnan(x: Expr) -> Expr:
    """Return whether x is not a number."""
    return Unary(UnaryOp.ISNAN, x)


def any_lane(cond: Expr) -> Expr:
    """Return whether the condition holds in any lane of the vector: one answer for all.

    Where the batch is no vector axis it is the condition itself. So a matrix may see
    True only because of its neighbours, and its result must not depend on that: use it
    to bound loops and to skip work, and select by the condition inside.
    """
    return Unary(UnaryOp.ANY_LANE, cond)


def minimum(a: Operand, b: Operand) -> Expr:
    """Return ``b if b < a else a``."""
    return binary(BinaryOp.MIN, a, b)


def maximum(a: Operand, b: Operand) -> Expr:
    """Return ``b if a < b else a``."""
    return binary(BinaryOp.MAX, a, b)


def copysign(a: Operand, b: Operand) -> Expr:
    """Return a with the sign of b."""
    return binary(BinaryOp.COPYSIGN, a, b)


def where(cond: Expr, a: Operand, b: Operand) -> Expr:
    """Return a where the condition holds, else b; both are evaluated."""
    if isinstance(a, Expr):
        return Select(cond, a, as_expr(b, a.dtype))
    if isinstance(b, Expr):
        return Select(cond, as_expr(a, b.dtype), b)
    msg = "where() of two Python numbers: make one a Const"
    raise TypeError(msg)


def fma(a: Expr, b: Operand, c: Operand) -> Expr:
    """Return a*b + c, rounded once where the target can."""
    return Fma(a, as_expr(b, a.dtype), as_expr(c, a.dtype))


def cast(x: Expr, dtype: DType) -> Expr:
    """Return x in another dtype."""
    return x if x.dtype is dtype else Cast(x, dtype)


def square(x: Expr) -> Expr:
    """Return x*x; name a large x with `let` first."""
    return Binary(BinaryOp.MUL, x, x)
