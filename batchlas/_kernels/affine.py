"""Subscripts as sums of axes times integers, for the questions rules ask of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batchlas._kernels.ir import Axis, Binary, BinaryOp, Expr
from batchlas._kernels.walk import const_int

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Linear:
    """constant + sum of coefficient * axis + sum of coefficient * another term."""

    axes: Mapping[int, tuple[Axis, int]]
    constant: int = 0
    others: Mapping[Expr, int] = field(default_factory=dict)

    def coefficient(self, axis: int) -> int:
        """Return the factor of an axis, by its id."""
        return self.axes[axis][1] if axis in self.axes else 0


def linear(expr: Expr) -> Linear:
    """Return the linear form of an integer; what does not fit is in `others`."""
    value = const_int(expr)
    if value is not None:
        return Linear({}, value)
    if isinstance(expr, Axis):
        return Linear({expr.id: (expr, 1)})
    if isinstance(expr, Binary) and expr.op in {BinaryOp.ADD, BinaryOp.SUB}:
        return _sum(linear(expr.a), linear(expr.b), 1 if expr.op is _ADD else -1)
    if isinstance(expr, Binary) and expr.op is BinaryOp.MUL:
        a, b = linear(expr.a), linear(expr.b)
        for factor, form in ((a, b), (b, a)):
            if not factor.axes and not factor.others:
                return _sum(Linear({}), form, factor.constant)
    return Linear({}, 0, {expr: 1})


_ADD = BinaryOp.ADD


def _sum(a: Linear, b: Linear, factor: int) -> Linear:
    axes = dict(a.axes)
    for ident, (axis, coefficient) in b.axes.items():
        axes[ident] = (axis, a.coefficient(ident) + factor * coefficient)
    others = dict(a.others)
    for term, coefficient in b.others.items():
        others[term] = others.get(term, 0) + factor * coefficient
    kept = {ident: pair for ident, pair in axes.items() if pair[1]}
    left = {term: coefficient for term, coefficient in others.items() if coefficient}
    return Linear(kept, a.constant + factor * b.constant, left)


def owner_keys(index: tuple[Expr, ...], axis: Axis) -> frozenset[tuple[object, ...]]:
    """Return keys that two accesses share only if equal cells mean equal axis values.

    A subscript ``x*c + r`` with all other factors multiples of c >= size(r) gives r
    as the remainder; ``r*c + x`` with x in 0 ... c-1 gives it as the quotient; so does
    r alone, of any size.
    """
    size = const_int(axis.size)
    keys: set[tuple[object, ...]] = set()
    for dim, expr in enumerate(index):
        form = linear(expr)
        mine = form.coefficient(axis.id)
        rest = [(a, c) for a, c in form.axes.values() if a.id != axis.id]
        if form.others or not mine:
            continue
        if not rest:
            keys.add((dim, "alone", mine, form.constant))
        span = _span(rest)
        if mine > 0 and form.constant == 0 and span is not None and span < mine:
            keys.add((dim, "quotient", mine))
        if size is not None and mine == 1 and _all_multiples(rest, form, size):
            keys.add((dim, "remainder", size))
    return frozenset(keys)


def _span(terms: list[tuple[Axis, int]]) -> int | None:
    """Return the largest value of a sum of axes, None if it may be negative."""
    total = 0
    for axis, factor in terms:
        size = const_int(axis.size)
        if size is None or factor < 0:
            return None
        total += factor * max(size - 1, 0)
    return total


def _all_multiples(terms: list[tuple[Axis, int]], form: Linear, size: int) -> bool:
    return form.constant % size == 0 and all(f % size == 0 for _, f in terms)
