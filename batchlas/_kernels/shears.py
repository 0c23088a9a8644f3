"""Plane rotations as three shears: three multiply-adds for each pair of elements.

A rotation by an angle of at most a right angle is the product of a shear by the tangent
of half the angle, one by minus the sine the other way, and the first again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.tridiagonal import multiply_add_real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas._kernels.build import KernelBuilder
    from batchlas._kernels.ir import Expr


def rotated(
    k: KernelBuilder, turn: tuple[Expr, Expr], x: Sequence[Expr], y: Sequence[Expr]
) -> tuple[list[Expr], list[Expr]]:
    """Return s x + c y and c x - s y, for the elements of two vectors.

    `turn` is the tangent of half the angle, and minus the sine. Elements take each step
    together, since the steps of one wait for each other.
    """
    half, s = turn
    x = [k.let(each, "x") for each in x]
    pairs = zip(x, y, strict=True)
    low = [k.let(multiply_add_real(half, a, b), "y") for a, b in pairs]
    pairs = zip(low, x, strict=True)
    right: list[Expr] = [k.let(multiply_add_real(s, a, b), "x") for a, b in pairs]
    pairs = zip(right, low, strict=True)
    left: list[Expr] = [k.let(multiply_add_real(half, a, b), "y") for a, b in pairs]
    return left, right
