"""Scalar expressions of the kernel IR, compared by structure.

Decided here: which values exist, which dtypes they combine, and how Python's operators
spell them.  `==` compares structure, so equality *of values* is `a.eq(b)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from batchlas._kernels.kinds import (
    COMPARISONS,
    COMPLEX_OF,
    INDEX,
    INTEGER_ONLY,
    LOGICAL,
    ORDERED,
    REAL_ONLY,
    AxisRole,
    BinaryOp,
    DType,
    UnaryOp,
    reject,
)


class Node:
    """A frozen value of the IR."""

    __slots__ = ()


class Expr(Node):
    """A scalar value; Python's operators build larger ones."""

    __slots__ = ()

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        msg = "a kernel expression has no truth value; use where(), & and |"
        raise TypeError(msg)

    def __add__(self, other: Operand) -> Expr:
        return binary(BinaryOp.ADD, self, other)

    def __radd__(self, other: Operand) -> Expr:
        return binary(BinaryOp.ADD, other, self)

    def __sub__(self, other: Operand) -> Expr:
        return binary(BinaryOp.SUB, self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return binary(BinaryOp.SUB, other, self)

    def __mul__(self, other: Operand) -> Expr:
        return binary(BinaryOp.MUL, self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return binary(BinaryOp.MUL, other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return binary(BinaryOp.DIV, self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return binary(BinaryOp.DIV, other, self)

    def __floordiv__(self, other: Operand) -> Expr:
        return binary(BinaryOp.FLOORDIV, self, other)

    def __mod__(self, other: Operand) -> Expr:
        return binary(BinaryOp.MOD, self, other)

    def __neg__(self) -> Expr:
        return Unary(UnaryOp.NEG, self)

    def __lt__(self, other: Operand) -> Expr:
        return binary(BinaryOp.LT, self, other)

    def __le__(self, other: Operand) -> Expr:
        return binary(BinaryOp.LE, self, other)

    def __gt__(self, other: Operand) -> Expr:
        return binary(BinaryOp.GT, self, other)

    def __ge__(self, other: Operand) -> Expr:
        return binary(BinaryOp.GE, self, other)

    def __and__(self, other: Operand) -> Expr:
        return binary(BinaryOp.AND, self, other)

    def __or__(self, other: Operand) -> Expr:
        return binary(BinaryOp.OR, self, other)

    def __invert__(self) -> Expr:
        return Unary(UnaryOp.NOT, self)

    def eq(self, other: Operand) -> Expr:
        """Whether the two values are equal, as a value."""
        return binary(BinaryOp.EQ, self, other)

    def ne(self, other: Operand) -> Expr:
        """Whether the two values differ, as a value."""
        return binary(BinaryOp.NE, self, other)


Operand: TypeAlias = "Expr | bool | int | float | complex"


@dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    """A literal; equality looks at the dtype and at the sign of a zero as well."""

    value: bool | int | float | complex
    type: DType

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", _literal(self.value, self.type))

    @property
    def dtype(self) -> DType:
        """The dtype of the literal."""
        return self.type

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return NotImplemented
        return self.type is other.type and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash((Const, self.type, repr(self.value)))


@dataclass(frozen=True, slots=True)
class ScalarArg(Expr):
    """A scalar kernel argument: between `lo` and `hi`, a multiple of `multiple_of`."""

    name: str
    type: DType = INDEX
    lo: int = 0
    hi: int | None = None
    multiple_of: int = 1

    def __post_init__(self) -> None:
        if not (self.name.isidentifier()):
            reject(f"{self.name!r} is no identifier")
        if not (self.multiple_of >= 1):
            reject(f"{self.name}: multiple_of must be positive")
        if not (self.type.is_int or self.multiple_of == 1):
            reject(f"{self.name}: only integers have multiple_of")

    @property
    def dtype(self) -> DType:
        """The dtype of the argument."""
        return self.type


@dataclass(frozen=True, slots=True)
class Axis(Expr):
    """A counted loop variable 0 ... size-1; `id` is its identity in one kernel."""

    id: int
    size: Expr
    role: AxisRole = AxisRole.WEAK
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.size, int):
            object.__setattr__(self, "size", index_const(self.size))
        if not (isinstance(self.size, Expr)):
            reject(f"axis {self.name}: size {self.size!r}")
        if not (self.size.dtype.is_int):
            reject(f"axis {self.name}: size is no integer")
        least = self.size.value if isinstance(self.size, Const) else 0
        if not (int(least.real) >= 0):
            reject(f"axis {self.name}: negative size {least}")
        if not self.name:
            object.__setattr__(self, "name", f"i{self.id}")

    @property
    def dtype(self) -> DType:
        """The dtype of the loop variable."""
        return INDEX


@dataclass(frozen=True, slots=True)
class Temp(Expr):
    """The value that `ir.Let` named; one per lane, so it never forbids lanes."""

    id: int
    type: DType
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"t{self.id}")

    @property
    def dtype(self) -> DType:
        """The dtype of the named value."""
        return self.type


@dataclass(frozen=True, slots=True)
class Unary(Expr):
    """An operation of one operand."""

    op: UnaryOp
    x: Expr

    def __post_init__(self) -> None:
        kind = self.x.dtype
        if self.op in {UnaryOp.NOT, UnaryOp.ANY_LANE}:
            allowed = kind is DType.BOOL
        elif self.op in {UnaryOp.NEG, UnaryOp.ABS}:
            allowed = kind is not DType.BOOL
        elif self.op in {UnaryOp.RSQRT, UnaryOp.EXP, UnaryOp.LOG}:
            allowed = kind.is_inexact and not kind.is_complex
        else:
            allowed = kind.is_inexact
        if not (allowed):
            reject(f"{self.op.value} does not take {kind.value}")

    @property
    def dtype(self) -> DType:
        """The dtype of the result."""
        if self.op is UnaryOp.ISNAN:
            return DType.BOOL
        real = self.op in {UnaryOp.ABS, UnaryOp.REAL, UnaryOp.IMAG}
        return self.x.dtype.real if real else self.x.dtype


@dataclass(frozen=True, slots=True)
class Binary(Expr):
    """An operation of two operands of one dtype."""

    op: BinaryOp
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        kind = self.a.dtype
        if kind is not self.b.dtype:
            reject(
                f"{self.op.value} of {kind.value} and {self.b.dtype.value}: cast one"
            )
        if self.op in LOGICAL:
            allowed = kind is DType.BOOL
        elif self.op in INTEGER_ONLY:
            allowed = kind.is_int
        elif self.op in REAL_ONLY:
            allowed = kind in COMPLEX_OF
        elif self.op in ORDERED:
            allowed = kind is not DType.BOOL and not kind.is_complex
        elif self.op is BinaryOp.DIV:
            allowed = kind.is_inexact
        else:
            allowed = kind is not DType.BOOL or self.op in COMPARISONS
        if not (allowed):
            reject(f"{self.op.value} does not take {kind.value}")

    @property
    def dtype(self) -> DType:
        """The dtype of the result."""
        if self.op in COMPARISONS:
            return DType.BOOL
        if self.op is BinaryOp.COMPLEX:
            return COMPLEX_OF[self.a.dtype]
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Fma(Expr):
    """a * b + c with one rounding where the target has it."""

    a: Expr
    b: Expr
    c: Expr

    def __post_init__(self) -> None:
        kinds = {self.a.dtype, self.b.dtype, self.c.dtype}
        if not (len(kinds) == 1 and self.a.dtype.is_inexact):
            reject(f"fma of {sorted(kind.value for kind in kinds)}")

    @property
    def dtype(self) -> DType:
        """The dtype of the result."""
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Select(Expr):
    """`a` where the condition holds, else `b`; both are evaluated."""

    cond: Expr
    a: Expr
    b: Expr

    def __post_init__(self) -> None:
        if self.cond.dtype is not DType.BOOL:
            reject("select: the condition is no bool")
        if self.a.dtype is not self.b.dtype:
            reject(f"select of {self.a.dtype.value} and {self.b.dtype.value}: cast one")

    @property
    def dtype(self) -> DType:
        """The dtype of both branches."""
        return self.a.dtype


@dataclass(frozen=True, slots=True)
class Cast(Expr):
    """A value in another dtype."""

    x: Expr
    type: DType

    def __post_init__(self) -> None:
        if not (self.type.is_complex or not self.x.dtype.is_complex):
            reject("cast drops an imaginary part; take real() or imag()")

    @property
    def dtype(self) -> DType:
        """The dtype asked for."""
        return self.type


def index_const(value: int) -> Const:
    """Return an integer literal of the index dtype."""
    return Const(value, INDEX)


def indices(values: tuple[Operand, ...]) -> tuple[Expr, ...]:
    """Return subscripts or sizes as expressions; they must be integers."""
    out = tuple(as_expr(value, INDEX) for value in values)
    for value in out:
        if not (value.dtype.is_int):
            reject(f"{value!r} is no integer")
    return out


def as_expr(value: Operand, dtype: DType) -> Expr:
    """Return the value; a Python number becomes a literal of the dtype."""
    return value if isinstance(value, Expr) else Const(value, dtype)


def binary(op: BinaryOp, a: Operand, b: Operand) -> Expr:
    """Return the operation; a Python number takes the other operand's dtype."""
    if isinstance(a, Expr):
        return Binary(op, a, as_expr(b, a.dtype))
    if isinstance(b, Expr):
        return Binary(op, as_expr(a, b.dtype), b)
    msg = f"{op.value} of two Python numbers"
    raise TypeError(msg)


def _literal(value: complex, dtype: DType) -> bool | int | float | complex:
    """Return the number as the Python type that stands for the dtype."""
    if dtype is DType.BOOL:
        if value not in (0, 1):
            reject(f"{value!r} is no bool")
        return bool(value)
    if dtype.is_complex:
        return complex(value)
    if isinstance(value, complex):
        reject(f"{value!r} is not real")
    if not dtype.is_int:
        return float(value)
    if int(value) != value:
        reject(f"{value!r} is no {dtype.value}")
    return int(value)
