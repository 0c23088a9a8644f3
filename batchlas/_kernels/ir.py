"""The kernel IR: statements, kernels, and every other node under one name.

A kernel is a nest of blocks (tuples of statements) run in order.  Import nodes from
here; `build` writes kernels, `walk` reads and rewrites them, `validate` checks them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from batchlas._kernels.access import (
    AddressOf,
    Buffer,
    Load,
    OpaqueValue,
    Reduce,
    check_access,
    check_axes,
)
from batchlas._kernels.expr import (
    Axis,
    Binary,
    Cast,
    Const,
    Expr,
    Fma,
    Node,
    Operand,
    ScalarArg,
    Select,
    Temp,
    Unary,
    as_expr,
    binary,
    index_const,
    indices,
)
from batchlas._kernels.kinds import (
    INDEX,
    AxisRole,
    BinaryOp,
    DType,
    MemSpace,
    ReduceOp,
    UnaryOp,
    reject,
)

if TYPE_CHECKING:
    from batchlas._kernels.options import Option

__all__ = [
    "INDEX",
    "AddressOf",
    "Axis",
    "AxisRole",
    "Barrier",
    "Binary",
    "BinaryOp",
    "Block",
    "Buffer",
    "Cast",
    "Const",
    "DType",
    "Expr",
    "Fma",
    "For",
    "If",
    "Kernel",
    "KernelInfo",
    "Let",
    "Load",
    "MemSpace",
    "Node",
    "OpaqueCall",
    "OpaqueValue",
    "Operand",
    "ParallelStore",
    "Prefetch",
    "Reduce",
    "ReduceOp",
    "Repeat",
    "ScalarArg",
    "Select",
    "Stage",
    "Stmt",
    "Store",
    "Temp",
    "Unary",
    "UnaryOp",
    "as_expr",
    "binary",
    "index_const",
    "indices",
]


class Stmt(Node):
    """An effect, a named value, or control flow around a block."""

    __slots__ = ()


Block = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Let(Stmt):
    """Name a value for the rest of the enclosing block; loads happen here, once."""

    temp: Temp
    value: Expr

    def __post_init__(self) -> None:
        if self.temp.dtype is not self.value.dtype:
            kinds = f"{self.temp.dtype.value} = {self.value.dtype.value}"
            reject(f"let {self.temp.name}: {kinds}")


@dataclass(frozen=True, slots=True)
class Store(Stmt):
    """Write one element; where the gate is false nothing is written.

    A target may compute the value all the same, so loads in it need their own gates
    where they would leave their array.
    """

    buffer: Buffer
    index: tuple[Expr, ...]
    value: Expr
    gate: Expr | None = None

    def __post_init__(self) -> None:
        check_access(self.buffer, self.index, self.gate)
        if self.value.dtype is not self.buffer.dtype:
            kinds = f"{self.value.dtype.value} into {self.buffer.dtype.value}"
            reject(f"store to {self.buffer.name}: {kinds}")


@dataclass(frozen=True, slots=True)
class ParallelStore(Stmt):
    """Stores at once: every value and subscript is read before anything is written."""

    stores: tuple[Store, ...]

    def __post_init__(self) -> None:
        if not self.stores:
            reject("a parallel store of nothing")


@dataclass(frozen=True, slots=True)
class For(Stmt):
    """Counted loops around a block; the last axis is the innermost."""

    axes: tuple[Axis, ...]
    body: Block

    def __post_init__(self) -> None:
        check_axes("for", self.axes)
        check_block("for", self.body)


@dataclass(frozen=True, slots=True)
class Repeat(Stmt):
    """Run the body, then again while the condition holds (do-while).

    The condition sees the body's named values.  With `uniform` all threads of a
    work-group go on until none of their conditions holds: a thread whose own condition
    has failed takes part in barriers but stores nothing more.
    """

    id: int
    body: Block
    cond: Expr
    uniform: bool = False

    def __post_init__(self) -> None:
        check_block("repeat", self.body)
        if self.cond.dtype is not DType.BOOL:
            reject("repeat: the condition is no bool")


@dataclass(frozen=True, slots=True)
class If(Stmt):
    """A guard around a block; ordinary conditions are gates and `Select`."""

    cond: Expr
    body: Block

    def __post_init__(self) -> None:
        check_block("if", self.body)
        if self.cond.dtype is not DType.BOOL:
            reject("if: the condition is no bool")


@dataclass(frozen=True, slots=True)
class OpaqueCall(Stmt):
    """Call a function of the target's language; `writes` are argument positions."""

    fn: str
    args: tuple[Expr, ...]
    writes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for position in self.writes:
            ok = 0 <= position < len(self.args)
            if not ok or not isinstance(self.args[position], AddressOf):
                reject(f"{self.fn} writes argument {position}, which is no address")


@dataclass(frozen=True, slots=True)
class Barrier(Stmt):
    """All threads of the work-group arrive before any goes on."""


@dataclass(frozen=True, slots=True)
class Prefetch(Stmt):
    """A hint: `count` elements from a global cell on, in memory order, are read soon.

    It has no effect on results, so the cells may lie past the buffer's end.
    """

    buffer: Buffer
    index: tuple[Expr, ...]
    count: int

    def __post_init__(self) -> None:
        check_access(self.buffer, self.index, None)
        if self.buffer.space is not MemSpace.GLOBAL:
            reject(f"prefetch of {self.buffer.name}: not a global buffer")


@dataclass(frozen=True, slots=True)
class Stage(Stmt):
    """A buffered value: compute it over the axes into `buffer[axes]`, then index it."""

    buffer: Buffer
    axes: tuple[Axis, ...]
    value: Expr

    def __post_init__(self) -> None:
        check_axes("stage", self.axes)
        check_access(self.buffer, self.axes, None)
        if self.buffer.space is MemSpace.GLOBAL:
            reject(f"stage into {self.buffer.name}: a global buffer takes stores")
        if self.value.dtype is not self.buffer.dtype:
            reject(f"stage into {self.buffer.name}: {self.value.dtype.value}")


@dataclass(frozen=True, slots=True)
class KernelInfo:
    """What is known of a kernel beside its code; `test` as a name means choose one.

    `opts_to_apply` None lets the scheduler choose, () means none; `flops` and
    `moved_bytes` are the author's estimates for one launch, 0 if unknown.
    """

    name: str = "test"
    applied_opts: tuple[Option, ...] = ()
    opts_to_apply: tuple[Option, ...] | None = None
    beam: int = 0
    optimized: bool = False
    flops: int = 0
    moved_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Kernel(Node):
    """A whole kernel: its arguments in launch order, its body, what is known of it."""

    params: tuple[Buffer | ScalarArg, ...]
    body: Block
    info: KernelInfo = KernelInfo()

    def __post_init__(self) -> None:
        check_block("kernel", self.body)
        names = [param.name for param in self.params]
        if len(set(names)) != len(names):
            reject(f"two kernel arguments of one name among {names}")
        for position, param in enumerate(self.params):
            if isinstance(param, Buffer) and param.slot != position:
                reject(f"{param.name}: slot {param.slot} at position {position}")

    def with_info(self, **changes: object) -> Kernel:
        """Return this kernel with some fields of its info changed."""
        info = replace(self.info, **changes)  # type: ignore[arg-type]
        return replace(self, info=info)


def check_block(what: str, body: Block) -> None:
    """Raise unless the body is a tuple of statements, at least one."""
    if not body:
        reject(f"{what}: an empty body")
    for stmt in body:
        if not isinstance(stmt, Stmt):
            reject(f"{what}: {stmt!r} is no statement")
