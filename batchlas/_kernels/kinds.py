"""Closed sets of the kernel IR: dtypes, axis roles, memory spaces and operations."""

from __future__ import annotations

from enum import Enum, IntEnum
from typing import NoReturn


class DType(Enum):
    """Element types; complex ones may be expanded to pairs by a renderer."""

    BOOL = "bool"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    COMPLEX64 = "complex64"
    COMPLEX128 = "complex128"

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return _ITEMSIZE[self]

    @property
    def is_int(self) -> bool:
        """Whether values are integers (bool is not)."""
        return self in {DType.INT32, DType.INT64}

    @property
    def is_complex(self) -> bool:
        """Whether values have an imaginary part."""
        return self in {DType.COMPLEX64, DType.COMPLEX128}

    @property
    def is_inexact(self) -> bool:
        """Whether values are real or complex floating-point numbers."""
        return self.is_complex or self in {DType.FLOAT32, DType.FLOAT64}

    @property
    def real(self) -> DType:
        """The dtype of this one's real part."""
        return _REAL.get(self, self)


_ITEMSIZE = {
    DType.BOOL: 1,
    DType.INT32: 4,
    DType.INT64: 8,
    DType.FLOAT32: 4,
    DType.FLOAT64: 8,
    DType.COMPLEX64: 8,
    DType.COMPLEX128: 16,
}
_REAL = {DType.COMPLEX64: DType.FLOAT32, DType.COMPLEX128: DType.FLOAT64}
COMPLEX_OF = {real: wide for wide, real in _REAL.items()}
INDEX = DType.INT64  # axes, sizes and subscripts; batch times stride needs 64 bits


class AxisRole(IntEnum):
    """What runs the steps of an axis."""

    DEVICE = 0  # across devices: a launch variable, never an axis of a scheduler
    WEAK = 1  # not yet assigned; steps are independent (the author's promise)
    LOOP = 2  # serial loop: steps see what earlier steps stored
    GLOBAL = 3  # across the work-groups of a launch
    WARP = 4  # lanes of a warp; tensor cores only
    LOCAL = 5  # across the threads of a work-group
    UPCAST = 6  # unrolled copies in one thread, which share its registers
    VECTOR = 7  # lanes of vector registers: one copy of each register per lane
    PLACEHOLDER = 8  # while a kernel is being built


class MemSpace(Enum):
    """Where a buffer lives."""

    GLOBAL = "global"
    LOCAL = "local"  # one per work-group
    REGISTER = "register"  # one per thread


class UnaryOp(Enum):
    """Operations of one operand."""

    NEG = "neg"
    NOT = "not"
    ABS = "abs"  # of a complex number: its modulus, a real number
    SQRT = "sqrt"
    RSQRT = "rsqrt"
    EXP = "exp"
    LOG = "log"
    CONJ = "conj"
    REAL = "real"
    IMAG = "imag"
    ISNAN = "isnan"
    ANY_LANE = "any_lane"  # whether a condition holds in any lane of the vector


class BinaryOp(Enum):
    """Operations of two operands of one dtype.

    FLOORDIV and MOD take non-negative integers, where C and Python agree.  MAX is
    ``b if a < b else a`` and MIN is ``b if b < a else a``: a NaN in b is passed over.
    """

    ADD = "add"
    SUB = "sub"
    MUL = "mul"
    DIV = "div"
    FLOORDIV = "floordiv"
    MOD = "mod"
    MIN = "min"
    MAX = "max"
    COPYSIGN = "copysign"
    COMPLEX = "complex"  # real and imaginary part to a complex number
    LT = "lt"
    LE = "le"
    GT = "gt"
    GE = "ge"
    EQ = "eq"
    NE = "ne"
    AND = "and"
    OR = "or"


COMPARISONS = frozenset(
    {BinaryOp[name] for name in ("LT", "LE", "GT", "GE", "EQ", "NE")}
)
LOGICAL = frozenset({BinaryOp.AND, BinaryOp.OR})
INTEGER_ONLY = frozenset({BinaryOp.FLOORDIV, BinaryOp.MOD})
REAL_ONLY = frozenset({BinaryOp.COPYSIGN, BinaryOp.COMPLEX})
ORDERED = frozenset(
    {BinaryOp.MIN, BinaryOp.MAX, *COMPARISONS} - {BinaryOp.EQ, BinaryOp.NE}
)


class ReduceOp(Enum):
    """Foldings of a value over axes."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"


def reject(message: str) -> NoReturn:
    """Raise the error of a malformed node."""
    raise ValueError(message)
