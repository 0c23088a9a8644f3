"""Buffers, their accesses, reductions and opaque values of the kernel IR."""

from __future__ import annotations

from dataclasses import dataclass, field

from batchlas._kernels.expr import Axis, Const, Expr, Node, indices
from batchlas._kernels.kinds import INDEX, DType, MemSpace, ReduceOp, reject


@dataclass(frozen=True, slots=True)
class Buffer(Node):
    """Storage of elements, indexed by one subscript per dimension.

    `strides` and `offset` count elements; no strides means row-major and dense.  A
    `slot` is the position among a kernel's arguments; buffers made inside a kernel
    have none, and constant sizes.  A buffer that `streams` is written once and not read
    back: where a whole aligned vector is stored, it may pass the caches by.
    """

    name: str
    type: DType
    shape: tuple[Expr, ...]
    space: MemSpace = MemSpace.GLOBAL
    slot: int | None = None
    strides: tuple[Expr, ...] | None = None
    offset: Expr = field(default_factory=lambda: Const(0, INDEX))
    streams: bool = False

    def __post_init__(self) -> None:
        if not (self.name.isidentifier()):
            reject(f"{self.name!r} is no identifier")
        object.__setattr__(self, "shape", indices(self.shape))
        object.__setattr__(self, "offset", indices((self.offset,))[0])
        if self.strides is not None:
            object.__setattr__(self, "strides", indices(self.strides))
            if len(self.strides) != len(self.shape):
                reject(
                    f"{self.name}: {len(self.strides)} strides, {len(self.shape)} sizes"
                )
        inside = self.space is not MemSpace.GLOBAL
        if not (not inside or all(isinstance(size, Const) for size in self.shape)):
            reject(f"{self.name}: a {self.space.value} buffer needs constant sizes")
        if inside and self.slot is not None:
            reject(f"{self.name}: a {self.space.value} buffer is no argument")

    @property
    def dtype(self) -> DType:
        """The dtype of an element."""
        return self.type


@dataclass(frozen=True, slots=True)
class Load(Expr):
    """One element; where the gate is false nothing is read and the value is zero."""

    buffer: Buffer
    index: tuple[Expr, ...]
    gate: Expr | None = None

    def __post_init__(self) -> None:
        check_access(self.buffer, self.index, self.gate)

    @property
    def dtype(self) -> DType:
        """The dtype of the buffer."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True)
class Reduce(Expr):
    """The value folded over the axes, which it closes, in any order."""

    op: ReduceOp
    value: Expr
    axes: tuple[Axis, ...]

    def __post_init__(self) -> None:
        check_axes("reduce", self.axes)
        kind = self.value.dtype
        if not (kind is not DType.BOOL):
            reject("reduce of bool: select integers")
        if not (self.op is not ReduceOp.MAX or not kind.is_complex):
            reject("max of complex values")

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self.value.dtype


@dataclass(frozen=True, slots=True)
class AddressOf(Expr):
    """The address of one cell; only an argument of an opaque call."""

    buffer: Buffer
    index: tuple[Expr, ...]

    def __post_init__(self) -> None:
        check_access(self.buffer, self.index, None)

    @property
    def dtype(self) -> DType:
        """The dtype of the cell."""
        return self.buffer.dtype


@dataclass(frozen=True, slots=True)
class OpaqueValue(Expr):
    """The value of a function in the target's language, which writes nothing."""

    fn: str
    args: tuple[Expr, ...]
    type: DType

    @property
    def dtype(self) -> DType:
        """The dtype of the function's value."""
        return self.type


def check_access(buffer: Buffer, index: tuple[Expr, ...], gate: Expr | None) -> None:
    """Raise unless the subscripts and the gate fit the buffer."""
    if len(index) != len(buffer.shape):
        reject(
            f"{buffer.name}: {len(index)} subscripts, {len(buffer.shape)} dimensions"
        )
    for value in index:
        if not (isinstance(value, Expr) and value.dtype.is_int):
            reject(f"{buffer.name}: subscript {value!r} is no integer")
    if not (gate is None or gate.dtype is DType.BOOL):
        reject(f"{buffer.name}: the gate is no bool")


def check_axes(what: str, axes: tuple[Axis, ...]) -> None:
    """Raise unless these are plain axes, at least one and each once."""
    if not (len(axes) > 0):
        reject(f"{what} over no axes")
    for axis in axes:
        if not (isinstance(axis, Axis)):
            reject(f"{what}: {axis!r} is no axis")
    if len({axis.id for axis in axes}) != len(axes):
        reject(f"{what}: an axis twice")
