"""Accesses: flat subscripts, loads and stores of one cell or of one cell per lane."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

from batchlas._kernels.affine import linear
from batchlas._kernels.functions import cast
from batchlas._kernels.ir import (
    INDEX,
    AddressOf,
    Axis,
    Buffer,
    DType,
    Expr,
    Load,
    MemSpace,
    index_const,
)
from batchlas._kernels.render.base import Cell
from batchlas._kernels.render.rendered import RenderError
from batchlas._kernels.render.values import Value, bare
from batchlas._kernels.walk import const_int, fold, post_order
from batchlas._runtime.devices import CACHE_LINE_BYTES

if TYPE_CHECKING:
    from batchlas._kernels.ir import Prefetch
    from batchlas._kernels.render.expressions import Expressions
    from batchlas._kernels.render.session import Session
    from batchlas._kernels.render.values import Env


@dataclass(frozen=True, slots=True)
class Cells:
    """Where an access goes: one subscript, or one for each lane.

    `adjacent` lanes lie side by side, so that one vector access reaches them.
    """

    buffer: Buffer
    subscripts: tuple[str, ...]
    adjacent: bool = False


class Memory:
    """Prints loads and stores; storage inside the kernel has one array per part."""

    expressions: Expressions

    def __init__(self, session: Session) -> None:
        self.session = session
        self.inside: dict[str, tuple[str, ...]] = {}

    # storage

    def declare_storage(self) -> None:
        """Declare the kernel's registers and work-group buffers."""
        plan = self.session.plan
        for buffer in plan.storage:
            suffixes = ("_re", "_im") if buffer.dtype.is_complex else ("",)
            lanes = plan.lanes if buffer.name in plan.varying else 1
            real, count = buffer.dtype.real, cell_count(buffer)
            names = []
            for suffix in suffixes:
                base = buffer.name + suffix
                if buffer.space is MemSpace.LOCAL:
                    kind = DType.INT32 if real is DType.BOOL else real
                    names.append(self.session.local_array(base, kind, count, 1))
                    continue
                name = self.session.names.fresh(base)
                self._declare(name, real, count, lanes)
                names.append(name)
            self.inside[buffer.name] = tuple(names)

    def _declare(self, name: str, dtype: DType, count: int, lanes: int) -> None:
        """Declare registers; those that a mask may leave alone begin as zero.

        The CPU compiler crashed on a select whose old value was never set.
        """
        dialect = self.session.dialect
        if count > 1:
            zeroed = lanes > 1 and self.session.plan.has_masks
            line = dialect.private_array(dtype, name, count, lanes, zeroed=zeroed)
        else:
            kind = dialect.type_of(dtype, lanes)
            zero = self.expressions.zero(dtype)
            text = self.expressions.widen(zero, lanes).text
            line = dialect.declaration(kind, name, text)
        self.session.writer.line(line)

    # subscripts

    def cells(self, buffer: Buffer, index: tuple[Expr, ...], env: Env) -> Cells:
        """Return where an access goes in one copy of the code."""
        flat = flat_index(buffer, index)
        vector = env.vector
        if vector is None or not _reads_axis(flat, vector.axis):
            return Cells(buffer, (bare(self.expressions.scalar(flat, env)),))
        own = buffer.space is not MemSpace.GLOBAL  # storage inside has all lanes
        lanes = [env.in_lane(i, own=own) for i in range(len(vector.texts))]
        texts = [bare(self.expressions.scalar(flat, lane)) for lane in lanes]
        adjacent = linear(flat).coefficient(vector.axis) == 1 and (
            own or vector.texts == vector.numbers
        )
        planes = buffer.space is not MemSpace.GLOBAL or not buffer.dtype.is_complex
        flags = buffer.dtype is DType.BOOL
        return Cells(buffer, tuple(texts), adjacent and planes and not flags)

    def _places(self, cells: Cells, lane: int) -> tuple[str, ...]:
        """Return the text of a cell's parts."""
        buffer, at = cells.buffer, self.session.dialect.subscript
        if buffer.space is MemSpace.REGISTER and cell_count(buffer) == 1:
            return self.inside[buffer.name]
        parts = self._parts(cells, lane)
        return tuple(f"{part.array}[{at(part.at)}]" for part in parts)

    def _parts(self, cells: Cells, lane: int) -> tuple[Cell, ...]:
        """Return where the numbers of a cell are; a complex one has two."""
        subscript = cells.subscripts[lane if len(cells.subscripts) > 1 else 0]
        buffer = cells.buffer
        if buffer.space is not MemSpace.GLOBAL:
            return tuple(Cell(name, subscript) for name in self.inside[buffer.name])
        name = self.session.params[buffer.name]
        if not buffer.dtype.is_complex:
            return (Cell(name, subscript),)
        twice = f"2 * ({subscript})"
        return Cell(name, twice), Cell(name, f"{twice} + 1")

    # loads

    def load(self, node: Load, env: Env) -> Value:
        """Return the loaded value; where its gate is false, zero."""
        ex = self.expressions
        if self._is_gather(node, env):
            return self._gathered(node, env)
        cells = self.cells(node.buffer, node.index, env)
        gate = None if node.gate is None else ex.value(node.gate, env)
        if node.buffer.space is MemSpace.REGISTER:
            value = self._register(node.buffer, cells)
            zero = ex.zero(value.dtype)
            return value if gate is None else ex.choose(gate, value, zero)
        if node.buffer.space is MemSpace.GLOBAL:
            gate = ex.both(env.may_read, gate)
        gate = None if gate is None else ex.named(gate, "gate")
        lanes = max(len(cells.subscripts), 1 if gate is None else gate.lanes)
        if gate is None and cells.adjacent:
            return self._adjacent(cells, lanes)
        per_lane = [self._one(cells, lane, gate) for lane in range(lanes)]
        if lanes == 1:
            return Value(node.dtype, per_lane[0])
        join, real = self.session.dialect.vector, node.dtype.real
        parts = tuple(join(real, lanes, texts) for texts in zip(*per_lane, strict=True))
        return Value(node.dtype, parts, lanes)

    def _register(self, buffer: Buffer, cells: Cells) -> Value:
        varies = buffer.name in self.session.plan.varying
        lanes = self.session.plan.lanes if varies else 1
        if lanes > 1 and cell_count(buffer) > 1:
            cell = self.session.dialect.vector_cell
            texts = tuple(cell(part) for part in self._parts(cells, 0))
            return Value(buffer.dtype, texts, lanes)
        parts = self._places(cells, 0)
        if buffer.dtype is DType.BOOL and lanes == 1:
            parts = tuple(self.session.dialect.truth(part) for part in parts)
        return Value(buffer.dtype, parts, lanes)

    def _is_gather(self, node: Load, env: Env) -> bool:
        """Return whether each lane reads a register cell of its own choice."""
        inside = node.buffer.space is MemSpace.REGISTER
        return (
            inside
            and env.vector is not None
            and self.session.plan.varies(flat_index(node.buffer, node.index))
        )

    def _gathered(self, node: Load, env: Env) -> Value:
        """Print what each lane finds at its own subscript, zero without its gate."""
        ex, lanes = self.expressions, self.session.plan.lanes
        at = ex.widen(ex.value(flat_index(node.buffer, node.index), env), lanes)
        at = ex.named(at, "at")
        gather, real = self.session.dialect.gathered, node.dtype.real
        names = self.inside[node.buffer.name]
        parts = tuple(gather(name, real, lanes, at.text) for name in names)
        value = Value(node.dtype, parts, lanes)
        if node.gate is None:
            return value
        return ex.choose(ex.value(node.gate, env), value, ex.zero(value.dtype))

    def _adjacent(self, cells: Cells, lanes: int) -> Value:
        load, dtype = self.session.dialect.load_vector, cells.buffer.dtype
        parts = self._parts(cells, 0)
        return Value(dtype, tuple(load(p, dtype.real, lanes) for p in parts), lanes)

    def _one(self, cells: Cells, lane: int, gate: Value | None) -> tuple[str, ...]:
        """Return the parts of one lane."""
        dialect, dtype = self.session.dialect, cells.buffer.dtype
        parts = self._places(cells, lane)
        many = len(cells.subscripts) > 1 or (gate is not None and gate.lanes > 1)
        if dtype is DType.BOOL:
            flags = (dialect.truth(part) for part in parts)
            form = dialect.lane_of_bool
            parts = tuple(form.format(c=f) if many else f for f in flags)
        if gate is None:
            return parts
        zero = dialect.literal(0, dtype.real)
        cond = self.expressions.lane(gate, lane)
        choice = dialect.choice
        return tuple(choice.format(c=cond, a=part, b=zero) for part in parts)

    # stores

    def store(self, cells: Cells, value: Value, mask: Value | None) -> None:
        """Write a store of a value that has a name, in the lanes of the mask."""
        if cells.buffer.space is MemSpace.REGISTER:
            self._set_register(cells, value, mask)
            return
        masked = 1 if mask is None else mask.lanes
        lanes = max(len(cells.subscripts), value.lanes, masked)
        writer, dialect = self.session.writer, self.session.dialect
        if cells.adjacent and mask is None:
            wide = self.expressions.widen(value, lanes)
            real, store = cells.buffer.dtype.real, dialect.store_vector
            for cell, part in zip(self._parts(cells, 0), wide.parts, strict=True):
                writer.line(store(cell, part, real, lanes, streams=False))
            return
        for lane in range(lanes):
            with ExitStack() as stack:
                if mask is not None:
                    cond = self.expressions.lane(mask, lane)
                    stack.enter_context(writer.block(dialect.if_header(cond)))
                for number, place in enumerate(self._places(cells, lane)):
                    text = self.expressions.lane(value, lane, number)
                    if value.dtype is DType.BOOL:
                        zero_or_one = f"({text} != 0)" if value.lanes > 1 else text
                        text = dialect.kept_bool(zero_or_one)
                    writer.line(dialect.assignment(place, bare(text)))

    def _set_register(self, cells: Cells, value: Value, mask: Value | None) -> None:
        ex, dialect = self.expressions, self.session.dialect
        old = self._register(cells.buffer, cells)
        if value.lanes > old.lanes:
            msg = f"lanes differ in what is stored to {cells.buffer.name}"
            raise RenderError(msg)
        new = ex.widen(value, old.lanes)
        if mask is not None:
            new = ex.choose(mask, new, old)
        if new.lanes > 1 and cell_count(cells.buffer) > 1:
            for cell, part in zip(self._parts(cells, 0), new.parts, strict=True):
                line = dialect.set_vector_cell(cell, bare(part))
                self.session.writer.line(line)
            return
        for place, part in zip(self._places(cells, 0), new.parts, strict=True):
            flag = new.dtype is DType.BOOL and new.lanes == 1
            text = dialect.kept_bool(part) if flag else part
            self.session.writer.line(dialect.assignment(place, bare(text)))

    # hints

    def prefetch(self, stmt: Prefetch, env: Env) -> None:
        """Write a loop over the cache lines of what each lane will read."""
        session, dtype = self.session, stmt.buffer.dtype
        per_line = CACHE_LINE_BYTES // dtype.itemsize
        cells = self.cells(stmt.buffer, stmt.index, env)
        starts, count = cells.subscripts, stmt.count
        if env.vector is not None and len(starts) > 1:
            flat = linear(flat_index(stmt.buffer, stmt.index))
            if flat.coefficient(env.vector.axis) == count:  # lanes follow each other
                starts, count = starts[:1], count * len(starts)
        for start in starts:
            line = session.names.fresh("line")
            header = session.dialect.for_header(line, str(-(-count // per_line)))
            with session.writer.block(header):
                at = replace(cells, subscripts=(f"{start} + ({line} * {per_line})",))
                form = session.dialect.prefetch
                reals = CACHE_LINE_BYTES // dtype.real.itemsize
                place = self._places(at, 0)[0]
                session.writer.line(form.format(place=place, count=reals))

    # addresses

    def address(self, node: AddressOf, env: Env) -> Value:
        """Return the address of a cell, for an opaque call."""
        form = self.session.dialect.address
        if not form or node.dtype.is_complex:
            msg = f"{node.buffer.name}: this target has no address of a complex cell"
            raise RenderError(msg if form else "this target has no address of a cell")
        (place,) = self._places(self.cells(node.buffer, node.index, env), 0)
        return Value(node.dtype, (form.format(a=place),))


def flat_index(buffer: Buffer, index: tuple[Expr, ...]) -> Expr:
    """Return the position of an element, counted in elements from the first."""
    steps = buffer.strides
    if steps is None:
        steps = tuple(
            fold(_product(buffer.shape[d + 1 :])) for d in range(len(buffer.shape))
        )
    total = buffer.offset
    for value, step in zip(index, steps, strict=True):
        total = total + cast(value, INDEX) * cast(step, INDEX)
    return fold(total)


def cell_count(buffer: Buffer) -> int:
    """Return the number of elements of a buffer inside the kernel."""
    return prod(const_int(size) or 0 for size in buffer.shape)


def _product(sizes: tuple[Expr, ...]) -> Expr:
    total: Expr = index_const(1)
    for size in sizes:
        total = total * cast(size, INDEX)
    return total


def _reads_axis(expr: Expr, ident: int) -> bool:
    return any(isinstance(n, Axis) and n.id == ident for n in post_order(expr))
