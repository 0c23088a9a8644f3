"""Expressions of the reference interpreter: each becomes a function of a lane."""

from __future__ import annotations

import operator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels.cells import CASTS, InterpretError, Scalar, UnwrittenError
from batchlas._kernels.ir import (
    AddressOf,
    Axis,
    Binary,
    BinaryOp,
    Cast,
    Const,
    Expr,
    Fma,
    Load,
    MemSpace,
    OpaqueValue,
    Reduce,
    ReduceOp,
    ScalarArg,
    Select,
    Temp,
    Unary,
    UnaryOp,
)
from batchlas._kernels.pad import identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from batchlas._kernels.cells import Cells, Lane, Tracker
    from batchlas._kernels.ir import Buffer

    Value: TypeAlias = Callable[["Lane"], Any]


def _rsqrt(x: Scalar) -> Scalar:
    return type(x)(1) / np.sqrt(x)


def _floordiv(a: int, b: int) -> int:
    _check_natural(a, b)
    return a // b


def _mod(a: int, b: int) -> int:
    _check_natural(a, b)
    return a % b


def _check_natural(a: int, b: int) -> None:
    if a < 0 or b <= 0:
        msg = f"integer division of {a} by {b}: targets disagree below zero"
        raise InterpretError(msg)


UNARY: dict[UnaryOp, Callable[[Any], Any]] = {
    UnaryOp.NEG: operator.neg,
    UnaryOp.NOT: operator.not_,
    UnaryOp.ABS: abs,
    UnaryOp.SQRT: np.sqrt,
    UnaryOp.RSQRT: _rsqrt,
    UnaryOp.EXP: np.exp,
    UnaryOp.LOG: np.log,
    UnaryOp.CONJ: np.conj,
    UnaryOp.REAL: lambda x: x.real,
    UnaryOp.IMAG: lambda x: x.imag,
    UnaryOp.ISNAN: lambda x: x != x,  # noqa: PLR0124 - NaN is what differs from itself
}
BINARY: dict[BinaryOp, Callable[[Any, Any], Any]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.SUB: operator.sub,
    BinaryOp.MUL: operator.mul,
    BinaryOp.DIV: operator.truediv,
    BinaryOp.FLOORDIV: _floordiv,
    BinaryOp.MOD: _mod,
    BinaryOp.MIN: lambda a, b: b if b < a else a,
    BinaryOp.MAX: lambda a, b: b if a < b else a,
    BinaryOp.COPYSIGN: np.copysign,
    BinaryOp.COMPLEX: lambda a, b: a + b * type(a + 0 * 1j)(1j),
    BinaryOp.LT: operator.lt,
    BinaryOp.LE: operator.le,
    BinaryOp.GT: operator.gt,
    BinaryOp.GE: operator.ge,
    BinaryOp.EQ: operator.eq,
    BinaryOp.NE: operator.ne,
    BinaryOp.AND: operator.and_,
    BinaryOp.OR: operator.or_,
}
FOLD: dict[ReduceOp, Callable[[Any, Any], Any]] = {
    ReduceOp.ADD: operator.add,
    ReduceOp.MUL: operator.mul,
    ReduceOp.MAX: BINARY[BinaryOp.MAX],
}


class Evaluator:
    """Turns expressions into functions; memory is bound when a kernel is launched."""

    def __init__(
        self,
        scalars: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        order: Callable[[int], Iterable[int]],
        tracker: Tracker | None,
    ) -> None:
        self.scalars = scalars
        self.functions = functions
        self.order = order
        self.tracker = tracker
        self.memory: dict[str, Cells] = {}
        self._made: dict[int, tuple[Expr, Value]] = {}

    def probe(self, value: Value, lane: Lane) -> None:
        """Raise if a value, which nobody will use, reads outside an array.

        A target may compute a store's value before it looks at the gate.
        """
        tracker, self.tracker = self.tracker, None
        with suppress(UnwrittenError):
            value(lane)
        self.tracker = tracker

    def function(self, expr: Expr) -> Value:
        """Return the expression as a function of a lane."""
        known = self._made.get(id(expr))
        if known is None:
            # the node is kept with its function, so that its id stays taken
            known = self._made[id(expr)] = (expr, self._make(expr))
        return known[1]

    def functions_of(self, exprs: Iterable[Expr]) -> tuple[Value, ...]:
        """Return several expressions as functions."""
        return tuple(self.function(expr) for expr in exprs)

    def _make(self, expr: Expr) -> Value:
        maker = _MAKERS.get(type(expr))
        if maker is None:
            msg = f"{type(expr).__name__} has no value"
            raise InterpretError(msg)
        return maker(self, expr)

    def const(self, expr: Const) -> Value:
        value = CASTS[expr.dtype](expr.value)
        return lambda _lane: value

    def scalar(self, expr: ScalarArg) -> Value:
        value = CASTS[expr.dtype](self.scalars[expr.name])
        if value != self.scalars[expr.name] or (
            expr.dtype.is_int and value % expr.multiple_of
        ):
            msg = f"{expr.name} = {self.scalars[expr.name]} is not what {expr!r} allows"
            raise InterpretError(msg)
        return lambda _lane: value

    def axis(self, expr: Axis) -> Value:
        ident = expr.id
        return lambda lane: lane.at[ident]

    def temp(self, expr: Temp) -> Value:
        ident = expr.id
        return lambda lane: lane.temps[ident]

    def unary(self, expr: Unary) -> Value:
        x = self.function(expr.x)
        if expr.op is UnaryOp.ANY_LANE:
            return lambda lane: any(x(mate) for mate in lane.mates if mate.active)
        fn = UNARY[expr.op]
        return lambda lane: fn(x(lane))

    def binary(self, expr: Binary) -> Value:
        fn, a, b = BINARY[expr.op], self.function(expr.a), self.function(expr.b)
        return lambda lane: fn(a(lane), b(lane))

    def fma(self, expr: Fma) -> Value:
        a, b, c = self.functions_of((expr.a, expr.b, expr.c))
        return lambda lane: a(lane) * b(lane) + c(lane)

    def select(self, expr: Select) -> Value:
        cond, a, b = self.functions_of((expr.cond, expr.a, expr.b))

        def value(lane: Lane) -> Scalar:
            yes, no = a(lane), b(lane)
            return yes if cond(lane) else no

        return value

    def cast(self, expr: Cast) -> Value:
        fn, x = CASTS[expr.dtype], self.function(expr.x)
        return lambda lane: fn(x(lane))

    def load(self, expr: Load) -> Value:
        index = self.functions_of(expr.index)
        gate = None if expr.gate is None else self.function(expr.gate)
        zero = CASTS[expr.dtype](0)

        def value(lane: Lane) -> Scalar:
            if gate is not None and not gate(lane):
                return zero
            place = tuple(fn(lane) for fn in index)
            cells = self.cells(expr.buffer, lane)
            if self.tracker is not None:
                self.tracker.read(cells, place, lane)
            return cells.read(place)

        return value

    def reduce(self, expr: Reduce) -> Value:
        fold, start = (
            FOLD[expr.op],
            CASTS[expr.dtype](identity(expr.op, expr.dtype).value),
        )
        sizes = self.functions_of(axis.size for axis in expr.axes)
        ids = [axis.id for axis in expr.axes]
        term = self.function(expr.value)

        def over(depth: int, lane: Lane, total: Scalar) -> Scalar:
            if depth == len(ids):
                return fold(total, term(lane))
            for step in self.order(sizes[depth](lane)):
                lane.at[ids[depth]] = step
                total = over(depth + 1, lane, total)
            return total

        return lambda lane: over(0, lane, start)

    def opaque(self, expr: OpaqueValue) -> Value:
        fn, args = self.functions[expr.fn], self.functions_of(expr.args)
        cast = CASTS[expr.dtype]
        return lambda lane: cast(fn(*(arg(lane) for arg in args)))

    def address(self, expr: AddressOf) -> Value:
        index = self.functions_of(expr.index)

        def value(lane: Lane) -> Scalar:
            cells = self.cells(expr.buffer, lane)
            place = tuple(fn(lane) for fn in index)
            if cells.array is None:
                msg = f"the address of {expr.buffer.name}, which is no global array"
                raise InterpretError(msg)
            if cells.strides is not None:
                step = zip(place, cells.strides, strict=True)
                return cells.array[cells.offset + sum(i * s for i, s in step) :]
            flat = cells.array.reshape(-1)
            return flat[int(np.ravel_multi_index(place, cells.shape)) :]

        return value

    def cells(self, buffer: Buffer, lane: Lane) -> Cells:
        """Return the cells of a buffer as a lane sees them."""
        if buffer.space is MemSpace.REGISTER:
            return lane.regs[buffer.name]
        return self.memory[buffer.name]


_MAKERS: dict[type, Callable[[Evaluator, Any], Value]] = {
    Const: Evaluator.const,
    ScalarArg: Evaluator.scalar,
    Axis: Evaluator.axis,
    Temp: Evaluator.temp,
    Unary: Evaluator.unary,
    Binary: Evaluator.binary,
    Fma: Evaluator.fma,
    Select: Evaluator.select,
    Cast: Evaluator.cast,
    Load: Evaluator.load,
    Reduce: Evaluator.reduce,
    OpaqueValue: Evaluator.opaque,
    AddressOf: Evaluator.address,
}
