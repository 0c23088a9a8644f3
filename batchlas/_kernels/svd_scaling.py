"""Powers of two that bring a matrix's largest element to a size safe to square."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from batchlas._kernels.functions import (
    absolute,
    any_lane,
    fma,
    imag,
    isnan,
    make_complex,
    maximum,
    real,
    where,
)
from batchlas._kernels.ir import Const, DType, Expr

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.build import KernelBuilder


class _Step(NamedTuple):
    """A factor for matrices whose largest element is above or below a limit."""

    factor: float
    limit: float

    def applies(self, largest: Expr) -> Expr:
        """Return whether a matrix takes this step."""
        return largest > self.limit if self.factor < 1 else largest < self.limit


# At the end the largest element is between 2^30 and 2^55, or 2^-200 and 2^300; matrices
# of zeros and the smallest subnormal numbers come short of that.
_STEPS = {
    DType.FLOAT32: (
        _Step(2.0**-80, 2.0**55),
        _Step(2.0**100, 2.0**-45),
        _Step(2.0**50, 2.0**5),
        _Step(2.0**25, 2.0**30),
    ),
    DType.FLOAT64: (
        _Step(2.0**-800, 2.0**300),
        _Step(2.0**500, 2.0**-200),
        _Step(2.0**500, 2.0**-200),
    ),
}
NOTHING = {DType.FLOAT32: 2.0**-80, DType.FLOAT64: 2.0**-900}
"""Squares below this count as zero: times the precision's square they underflow."""


class Scaling:
    """Scales the elements of a matrix; ``probe`` is NaN where one is not finite.

    `each` calls a function on every element, and stores what it returns if not None.
    """

    def __init__(
        self,
        k: KernelBuilder,
        dtype: DType,
        each: Callable[[Callable[[Expr], Expr | None]], None],
    ) -> None:
        self.k, self.each = k, each
        self.dtype, self.real = dtype, dtype.real
        self.steps = _STEPS[self.real]
        self.probe = k.register("probe", self.real)
        self.largest = k.register("largest", self.real)
        self.inverse = [
            k.register(f"unscale{step}", self.real) for step in range(len(self.steps))
        ]

    def write(self) -> None:
        """Write the statements; a matrix that is not finite becomes zero."""
        k = self.k
        one, zero = Const(1, self.real), Const(0, self.real)
        self.probe.set(0)
        self.largest.set(0)
        self.each(self._measure)
        bad = k.let(self.is_bad(), "bad")
        with k.guard(any_lane(bad)):
            self.each(lambda x: where(bad, Const(0, self.dtype), x))
            self.largest.set(where(bad, zero, self.largest[()]))
        for step, inverse in zip(self.steps, self.inverse, strict=True):
            inverse.set(one)
            size = k.let(self.largest[()], "size")
            applies = k.let(step.applies(size), "applies")
            with k.guard(any_lane(applies)):
                factor = k.let(where(applies, step.factor, one), "factor")
                self.each(partial(times, factor=factor))
                self.largest.set(size * factor)
                inverse.set(where(applies, 1 / step.factor, one))

    def is_bad(self) -> Expr:
        """Return whether the matrix holds NaN or infinity."""
        return isnan(self.probe[()])

    def undone(self, value: Expr) -> Expr:
        """Return a real value of the scaled matrix as one of the matrix."""
        for inverse in reversed(self.inverse):
            value = value * inverse[()]
        return value

    def _measure(self, x: Expr) -> None:
        for part in (real(x), imag(x)) if x.dtype.is_complex else (x,):
            zero = Const(0, self.real)
            self.probe.set(fma(part, zero, self.probe[()]))
            self.largest.set(maximum(self.largest[()], absolute(part)))


def times(x: Expr, factor: Expr) -> Expr:
    """Return x times a real number."""
    if x.dtype.is_complex:
        return make_complex(real(x) * factor, imag(x) * factor)
    return x * factor
