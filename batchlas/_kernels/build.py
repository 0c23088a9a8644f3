"""Writing a kernel so that it reads like its algorithm.

`KernelBuilder` collects statements into the innermost open block; `with` opens blocks,
subscripts load and store, and Python's operators build values::

    k = KernelBuilder("scale")
    nb = k.scalar("nb")
    x, y = k.input("x", F64, (nb, 4)), k.output("y", F64, (nb, 4))
    with k.weak(nb, "b") as b, k.weak(4, "i") as i:
        y[b, i] = 2.0 * x[b, i]
    kernel = k.finish()

An axis of `weak` promises independent steps (they read nothing that another step of it
writes); `serial` promises nothing.  Sums are `k.sum`, not accumulators, and values used
twice are `k.let`: both leave the axes free for lanes.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    INDEX,
    AddressOf,
    Axis,
    AxisRole,
    Barrier,
    Block,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    KernelInfo,
    Let,
    Load,
    MemSpace,
    OpaqueCall,
    Operand,
    ParallelStore,
    Prefetch,
    Reduce,
    ReduceOp,
    Repeat,
    ScalarArg,
    Stage,
    Stmt,
    Store,
    Temp,
    as_expr,
    indices,
)
from batchlas._kernels.validate import check_kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from batchlas._kernels.kinds import DType

    Index: TypeAlias = "Operand | tuple[Operand, ...]"


class Ref:
    """A buffer of a kernel being written: subscripts load, assignments store."""

    __slots__ = ("_kernel", "buffer")

    def __init__(self, kernel: KernelBuilder, buffer: Buffer) -> None:
        self._kernel = kernel
        self.buffer = buffer

    def __getitem__(self, index: Index) -> Expr:
        return Load(self.buffer, _subscripts(index))

    def __setitem__(self, index: Index, value: Operand) -> None:
        self._kernel.store(self, index, value)

    def get(self, *index: Operand, gate: Expr | None = None) -> Expr:
        """Return the element, or zero where the gate is false (nothing is read)."""
        return Load(self.buffer, indices(index), gate)

    def set(self, value: Operand) -> None:
        """Store into a buffer without dimensions."""
        self._kernel.store(self, (), value)

    def address(self, *index: Operand) -> AddressOf:
        """Return the address of an element, for an opaque call."""
        return AddressOf(self.buffer, indices(index))


class RepeatScope:
    """The open Repeat of a `with`; set its condition before the block ends."""

    __slots__ = ("cond",)

    def __init__(self) -> None:
        self.cond: Expr | None = None

    def again_while(self, cond: Expr) -> None:
        """Run the body once more while the condition holds."""
        self.cond = cond


class KernelBuilder:
    """Collects the arguments and statements of one kernel."""

    def __init__(self, name: str = "test") -> None:
        self._name = name
        self._params: list[Buffer | ScalarArg] = []
        self._blocks: list[list[Stmt]] = [[]]
        self._gates: list[Expr] = []
        self._next_id = 0

    # arguments and storage

    def scalar(
        self, name: str, dtype: DType = INDEX, *, multiple_of: int = 1
    ) -> ScalarArg:
        """Declare a scalar argument."""
        arg = ScalarArg(name, dtype, multiple_of=multiple_of)
        self._params.append(arg)
        return arg

    def array(
        self,
        name: str,
        dtype: DType,
        shape: tuple[Operand, ...],
        *,
        strides: tuple[Operand, ...] | None = None,
        offset: Operand = 0,
        streams: bool = False,
    ) -> Ref:
        """Declare an array argument; strides and offset count elements."""
        slot = len(self._params)
        steps = None if strides is None else indices(strides)
        start = as_expr(offset, INDEX)
        buffer = Buffer(
            name, dtype, indices(shape), MemSpace.GLOBAL, slot, steps, start, streams
        )
        self._params.append(buffer)
        return Ref(self, buffer)

    def local(self, name: str, dtype: DType, shape: tuple[int, ...]) -> Ref:
        """Declare storage of a work-group."""
        return Ref(self, Buffer(name, dtype, indices(shape), MemSpace.LOCAL))

    def register(self, name: str, dtype: DType, shape: tuple[int, ...] = ()) -> Ref:
        """Declare storage of a thread; without a shape it is one `get`/`set` cell."""
        return Ref(self, Buffer(name, dtype, indices(shape), MemSpace.REGISTER))

    def variable(self, value: Expr, name: str = "x") -> Ref:
        """Declare a register of one cell under a name of its own, and set it."""
        ref = self.register(f"{name}{self._new_id()}", value.dtype)
        ref.set(value)
        return ref

    # values

    def let(self, value: Expr, name: str = "") -> Temp:
        """Name a value: it is computed here, once, and may be used several times."""
        temp = Temp(self._new_id(), value.dtype, name)
        self.emit(Let(temp, value))
        return temp

    def sum(self, size: Operand, term: Callable[[Axis], Expr], name: str = "k") -> Expr:
        """Return the sum of `term(k)` over k = 0 ... size-1."""
        return self.reduce(ReduceOp.ADD, size, term, name)

    def reduce(
        self, op: ReduceOp, size: Operand, term: Callable[[Axis], Expr], name: str = "k"
    ) -> Expr:
        """Return `term(k)` folded over k = 0 ... size-1."""
        axis = self._axis(size, AxisRole.WEAK, name)
        return Reduce(op, term(axis), (axis,))

    # statements

    def emit(self, stmt: Stmt) -> None:
        """Append a statement to the open block."""
        self._blocks[-1].append(stmt)

    def store(self, ref: Ref, index: Index, value: Operand) -> None:
        """Store an element, under the gates of the open `where` blocks."""
        gate: Expr | None = None
        for cond in self._gates:
            gate = cond if gate is None else gate & cond
        expr = as_expr(value, ref.buffer.dtype)
        self.emit(Store(ref.buffer, _subscripts(index), expr, gate))

    def stage(
        self, ref: Ref, value: Callable[..., Expr], names: tuple[str, ...] = ()
    ) -> None:
        """Fill a local or register buffer with `value(i, j, ...)` of its subscripts."""
        sizes = ref.buffer.shape
        names = names or tuple(f"{ref.buffer.name}{d}" for d in range(len(sizes)))
        axes = tuple(
            self._axis(size, AxisRole.WEAK, name)
            for size, name in zip(sizes, names, strict=True)
        )
        self.emit(Stage(ref.buffer, axes, value(*axes)))

    def barrier(self) -> None:
        """Let all threads of the work-group arrive before any goes on."""
        self.emit(Barrier())

    def prefetch(self, ref: Ref, index: tuple[Operand, ...], count: int) -> None:
        """Say that `count` elements of a global array are read soon."""
        self.emit(Prefetch(ref.buffer, indices(index), count))

    def call(self, fn: str, *args: Expr, writes: tuple[int, ...] = ()) -> None:
        """Call a function of the target's language."""
        self.emit(OpaqueCall(fn, args, writes))

    # blocks

    @contextmanager
    def weak(self, size: Operand, name: str = "i") -> Iterator[Axis]:
        """Open a loop whose steps are independent."""
        with self.nest(AxisRole.WEAK, (size,), (name,)) as (axis,):
            yield axis

    @contextmanager
    def serial(self, size: Operand, name: str = "j") -> Iterator[Axis]:
        """Open a loop whose steps run in order."""
        with self.nest(AxisRole.LOOP, (size,), (name,)) as (axis,):
            yield axis

    @contextmanager
    def threads(self, size: int, name: str = "l") -> Iterator[Axis]:
        """Open an axis across the threads of a work-group (then barriers matter)."""
        with self.nest(AxisRole.LOCAL, (size,), (name,)) as (axis,):
            yield axis

    @contextmanager
    def nest(
        self, role: AxisRole, sizes: tuple[Operand, ...], names: tuple[str, ...]
    ) -> Iterator[tuple[Axis, ...]]:
        """Open several loops of one statement, which all can become global axes."""
        pairs = zip(sizes, names, strict=True)
        axes = tuple(self._axis(size, role, name) for size, name in pairs)
        with self._block() as body:
            yield axes
        self.emit(For(axes, tuple(body)))

    @contextmanager
    def repeat(self, *, uniform: bool = False) -> Iterator[RepeatScope]:
        """Open a do-while loop; set its condition with `again_while`."""
        scope = RepeatScope()
        ident = self._new_id()
        with self._block() as body:
            yield scope
        if scope.cond is None:
            msg = "a repeat without again_while()"
            raise ValueError(msg)
        self.emit(Repeat(ident, tuple(body), scope.cond, uniform))

    @contextmanager
    def where(self, cond: Expr) -> Iterator[None]:
        """Gate the stores of the block; loads are gated by `Ref.get`."""
        self._gates.append(cond)
        yield
        self._gates.pop()

    @contextmanager
    def guard(self, cond: Expr) -> Iterator[None]:
        """Run the block only where the condition holds (If)."""
        with self._block() as body:
            yield
        self.emit(If(cond, tuple(body)))

    @contextmanager
    def parallel(self) -> Iterator[None]:
        """Make the stores of the block one simultaneous assignment."""
        with self._block() as body:
            yield
        stores = tuple(stmt for stmt in body if isinstance(stmt, Store))
        if len(stores) != len(body):
            msg = "only stores can be parallel; name values before the block"
            raise ValueError(msg)
        self.emit(ParallelStore(stores))

    def finish(self) -> Kernel:
        """Return the kernel, checked."""
        if len(self._blocks) != 1:
            msg = f"{self._name}: a block is still open"
            raise ValueError(msg)
        body: Block = tuple(self._blocks[0])
        return check_kernel(Kernel(tuple(self._params), body, KernelInfo(self._name)))

    @contextmanager
    def _block(self) -> Iterator[list[Stmt]]:
        body: list[Stmt] = []
        self._blocks.append(body)
        yield body
        self._blocks.pop()

    def _axis(self, size: Operand, role: AxisRole, name: str) -> Axis:
        return Axis(self._new_id(), as_expr(size, INDEX), role, name)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1


def _subscripts(index: Index) -> tuple[Expr, ...]:
    return indices(index if isinstance(index, tuple) else (index,))
