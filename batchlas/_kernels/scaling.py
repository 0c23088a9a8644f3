"""Powers of two that bring a matrix into the range where squares are safe."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchlas._kernels.functions import absolute, fma, isnan, maximum, where
from batchlas._kernels.ir import Const, DType, Expr

if TYPE_CHECKING:
    from batchlas._kernels.build import KernelBuilder


@dataclass(frozen=True, slots=True)
class Range:
    """The binary exponents of a real dtype that the kernels rely on.

    Entries are scaled until the largest lies within 2**-bound ... 2**bound, by steps of
    2**step of which `steps` bring the least and the largest number there. What is below
    2**floor is nothing beside the matrix: its square would underflow.
    """

    bound: int
    step: int
    steps: int
    floor: int
    digits: int

    @property
    def eps(self) -> float:
        """Half of the distance from 1 to the next number."""
        return 2.0**-self.digits

    @property
    def tiny(self) -> float:
        """The square of what is nothing."""
        return 2.0 ** (2 * self.floor)


RANGES = {
    DType.FLOAT32: Range(bound=30, step=40, steps=3, floor=-60, digits=24),
    DType.FLOAT64: Range(bound=250, step=300, steps=3, floor=-480, digits=53),
}


class Scale:
    """A matrix's scale as it is being found: the largest entry, and what is not finite.

    Call `look` on every real number of the matrix, then `settle`.
    """

    def __init__(self, k: KernelBuilder, real: DType) -> None:
        self.k, self.real, self.range = k, real, RANGES[real]
        self.largest = k.register("largest", real)
        self.poison = k.register("poison", real)
        self.largest.set(0)
        self.poison.set(0)

    def look(self, x: Expr) -> None:
        """Take note of a number."""
        self.largest.set(maximum(self.largest[()], absolute(x)))
        self.poison.set(fma(x, 0, self.poison[()]))

    def settle(self) -> tuple[Expr, Expr, Expr]:
        """Return the scale, its inverse, and zero, or NaN if an entry is not finite.

        A matrix that is not finite has scale 0; entries must be selected by it, since
        the product of zero and infinity is NaN.
        """
        k, known = self.k, self.range
        size = k.let(self.largest[()], "size")
        scale: Expr = Const(1, self.real)
        inverse: Expr = Const(1, self.real)
        for limit, factor in (
            (2.0**known.bound, 2.0**-known.step),
            (2.0**-known.bound, 2.0**known.step),
        ):
            for _ in range(known.steps):
                out = size > limit if factor < 1 else size < limit
                out = k.let(out, "out")
                size = k.let(where(out, size * factor, size), "size")
                scale = k.let(where(out, scale * factor, scale), "scale")
                inverse = k.let(where(out, inverse * (1 / factor), inverse), "inverse")
        bad = isnan(self.poison[()])
        scale = k.let(where(bad, 0, scale), "scale")
        return scale, inverse, self.poison[()]
