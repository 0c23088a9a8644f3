"""Operations on values as text: scalars, and vectors of lanes."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from batchlas._kernels.ir import BinaryOp, DType, UnaryOp
from batchlas._kernels.kinds import COMPARISONS
from batchlas._kernels.render.values import Value, bare

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.render.session import Session


class Operations:
    """Combines values; what a result needs first is written as lines before it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.dialect = session.dialect

    def operate(self, op: BinaryOp, a: Value, b: Value) -> Value:
        """Return an operation of two real values that gives their dtype, or a bool."""
        lanes = max(a.lanes, b.lanes)
        vectors = lanes > 1
        if vectors and (a.dtype is DType.BOOL or op is BinaryOp.COPYSIGN):
            a, b = self.widen(a, lanes), self.widen(b, lanes)
        if a.dtype.is_int and not vectors:
            known = folded(op, a.text, b.text)
            if known is not None:
                return Value(a.dtype, (known,))
        form = self.dialect.form(op, lanes)
        text = self.dialect.operation(form, a.dtype, a=a.text, b=b.text)
        if op not in COMPARISONS:
            return Value(a.dtype, (text,), lanes)
        mask = Value(DType.BOOL, (text,), lanes)
        return self.as_mask(mask, a.dtype) if vectors else mask

    def as_mask(self, value: Value, compared: DType) -> Value:
        """Return the result of comparing vectors of a dtype as the kernel's mask."""
        mask = self.dialect.mask
        if compared is DType.BOOL or compared.itemsize == mask.itemsize:
            return value
        text = self.dialect.convert(value.text, mask, value.lanes)
        return Value(DType.BOOL, (text,), value.lanes)

    def widen(self, value: Value, lanes: int) -> Value:
        """Return the value with that many lanes."""
        if value.lanes == lanes:
            return value
        dialect, real, parts = self.dialect, value.dtype.real, value.parts
        if value.dtype is DType.BOOL:
            known = {dialect.condition(value=truth): -truth for truth in (False, True)}
            lane = bare(dialect.lane_of_bool.format(c=value.text))
            parts = (str(known.get(value.text, lane)),)
        wide = tuple(dialect.vector(real, lanes, [part]) for part in parts)
        return Value(value.dtype, wide, lanes)

    def choose(self, cond: Value, a: Value, b: Value) -> Value:
        """Return a where the condition holds, else b."""
        lanes = max(cond.lanes, a.lanes, b.lanes)
        if lanes == 1:
            choice = self.dialect.choice
            cond = self.named(cond) if len(a.parts) > 1 else cond
            parts = tuple(
                choice.format(c=cond.text, a=x, b=y)
                for x, y in zip(a.parts, b.parts, strict=True)
            )
            return Value(a.dtype, parts)
        mask = self.widen(cond, lanes).text
        real = a.dtype.real
        if real is not DType.BOOL and real.itemsize != self.dialect.mask.itemsize:
            narrow = (
                DType.INT32 if real.itemsize == DType.INT32.itemsize else DType.INT64
            )
            mask = self.dialect.convert(mask, narrow, lanes)
        a, b = self.widen(a, lanes), self.widen(b, lanes)
        pairs = zip(a.parts, b.parts, strict=True)
        parts = tuple(self.dialect.chosen(mask, x, y) for x, y in pairs)
        return Value(a.dtype, parts, lanes)

    def opposite(self, cond: Value) -> Value:
        """Return the negation of a condition."""
        form = self.dialect.form(UnaryOp.NOT, cond.lanes)
        return Value(DType.BOOL, (form.format(a=cond.text),), cond.lanes)

    def both(self, a: Value | None, b: Value | None) -> Value | None:
        """Return whether both conditions hold; None holds always."""
        if a is None or b is None:
            return b if a is None else a
        return self.operate(BinaryOp.AND, a, b)

    def named(self, value: Value, base: str = "v") -> Value:
        """Return the value as a name, written before the statement, if it is long."""
        return value if value.is_atom else self.declared(value, base)

    def declared(self, value: Value, base: str) -> Value:
        """Return the value under a name of its own."""
        session, dialect = self.session, self.dialect
        kind = dialect.type_of(value.dtype.real, value.lanes)
        is_flag = value.dtype is DType.BOOL and value.lanes == 1
        names = []
        for suffix, part in zip(_SUFFIXES[len(value.parts)], value.parts, strict=True):
            name = session.names.fresh(base + suffix)
            text = dialect.kept_bool(part) if is_flag else bare(part)
            session.writer.line(dialect.constant(kind, name, text))
            names.append(dialect.truth(name) if is_flag else name)
        return Value(value.dtype, tuple(names), value.lanes)

    def lane(self, value: Value, lane: int, part: int = 0) -> str:
        """Return one lane of a value that has a name."""
        text = value.parts[part]
        return text if value.lanes == 1 else self.dialect.lane(text, lane)

    def literal(self, value: float, dtype: DType) -> Value:
        """Return a literal."""
        text = self.dialect.literal(value, dtype.real)
        zero = self.dialect.literal(0, dtype.real)
        return Value(dtype, (text, zero) if dtype.is_complex else (text,))

    def zero(self, dtype: DType) -> Value:
        """Return zero; of a complex dtype, two of them."""
        return self.literal(0, dtype)

    def unary(self, op: UnaryOp, x: Value) -> Value:
        """Return an operation of one real value."""
        if op in {UnaryOp.NOT, UnaryOp.ANY_LANE}:
            return self.opposite(x) if op is UnaryOp.NOT else self.vote(x)
        if op is UnaryOp.ISNAN:
            x = self.named(x)
            return self.operate(BinaryOp.NE, x, x)
        if op is UnaryOp.ABS and x.dtype.is_int:
            x = self.named(x)
            negative = self.operate(BinaryOp.LT, x, self.zero(x.dtype))
            return self.choose(negative, self.unary(UnaryOp.NEG, x), x)
        if op in {UnaryOp.CONJ, UnaryOp.REAL}:
            return x
        if op is UnaryOp.IMAG:
            return self.zero(x.dtype)
        form = self.dialect.form(op, x.lanes)
        text = self.dialect.operation(form, x.dtype, a=x.text)
        return Value(x.dtype, (text,), x.lanes)

    def vote(self, cond: Value) -> Value:
        """Return whether a condition holds in any lane."""
        if cond.lanes == 1:
            return cond
        return Value(DType.BOOL, (f"({self.dialect.any_lane(cond.text)} != 0)",))

    def extreme(self, op: BinaryOp, a: Value, b: Value) -> Value:
        """Return the smaller or the larger value; a NaN in b is passed over."""
        a, b = self.named(a), self.named(b)
        first, second = (a, b) if op is BinaryOp.MAX else (b, a)
        return self.choose(self.operate(BinaryOp.LT, first, second), b, a)

    def cast(self, x: Value, dtype: DType) -> Value:
        """Return a value in another dtype."""
        if x.dtype is dtype:
            return x
        if x.dtype is DType.BOOL:
            one = self.literal(1, dtype)
            return self.choose(x, one, self.zero(dtype))
        if dtype is DType.BOOL:
            return self.operate(BinaryOp.NE, x, self.zero(x.dtype))
        convert = self.dialect.convert
        parts = tuple(convert(p, dtype.real, x.lanes) for p in x.parts)
        if dtype.is_complex and not x.dtype.is_complex:
            parts = (*parts, self.widen(self.zero(dtype.real), x.lanes).text)
        return Value(dtype, parts, x.lanes)


def folded(op: BinaryOp, a: str, b: str) -> str | None:
    """Return the text of an integer operation that literals decide, else None."""
    if a.isdecimal() and b.isdecimal() and op in _ON_LITERALS:
        return str(_ON_LITERALS[op](int(a), int(b)))
    if (op, b) in _RIGHT_UNITS:
        return a
    if (op, a) in _LEFT_UNITS:
        return b
    return "0" if op is BinaryOp.MUL and "0" in {a, b} else None


_LEFT_UNITS = {(BinaryOp.ADD, "0"), (BinaryOp.MUL, "1")}
_RIGHT_UNITS = _LEFT_UNITS | {(BinaryOp.SUB, "0"), (BinaryOp.FLOORDIV, "1")}
_ON_LITERALS: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: operator.add,
    BinaryOp.MUL: operator.mul,
}
_SUFFIXES = {1: ("",), 2: ("_re", "_im")}
