"""What a kernel's values and effects depend on, read and write.

`Dependence` answers D(u), the axes that a value depends on in data; `collect_effects`
lists the effects of a kernel with their surroundings; `depending` closes dependence
over private storage.  The rules themselves are in `rules`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    AddressOf,
    Axis,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Let,
    Load,
    MemSpace,
    Node,
    OpaqueCall,
    ParallelStore,
    Reduce,
    Repeat,
    Stage,
    Stmt,
    Store,
    Temp,
    Unary,
    UnaryOp,
)
from batchlas._kernels.walk import children, post_order, statements

if TYPE_CHECKING:
    from collections.abc import Iterable

Ids = frozenset[int]
NONE: Ids = frozenset()


class Dependence:
    """D(u) of a kernel's values: the ids of the axes they depend on in data."""

    def __init__(self, kernel: Kernel) -> None:
        # nodes are kept with their answers, so that no other node gets their id
        self._memo: dict[int, tuple[Node, Ids]] = {}
        self._temps: dict[int, Ids] = {}
        for stmt in statements(kernel.body):
            if isinstance(stmt, Let):
                self._temps[stmt.temp.id] = self.of(stmt.value)

    def of(self, *values: Node | None) -> Ids:
        """Return the ids of the axes that any of the values depends on."""
        found = NONE
        for value in values:
            if value is not None:
                found |= self._of(value)
        return found

    def _of(self, node: Node) -> Ids:
        known = self._memo.get(id(node))
        if known is None:
            known = self._memo[id(node)] = (node, self._compute(node))
        return known[1]

    def _compute(self, node: Node) -> Ids:
        if isinstance(node, Buffer) or is_vote(node):
            return NONE
        if isinstance(node, Axis):
            return self._of(node.size) | {node.id}
        if isinstance(node, Temp):
            return self._temps.get(node.id, NONE)
        if isinstance(node, Reduce):
            bounds = self.of(*(axis.size for axis in node.axes))
            return (self._of(node.value) | bounds) - {axis.id for axis in node.axes}
        # A register load has sources like any other: its cell holds what the same
        # step stored, so the buffer adds nothing, and no buffer depends on an axis.
        return self.of(*children(node))


@dataclass(frozen=True, slots=True)
class Access:
    """One place that touches a buffer."""

    buffer: Buffer
    index: tuple[Expr, ...]
    is_write: bool
    gate: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """A statement's own work, without that of the blocks inside it.

    `reads` and `writes` are names of buffers; a named value (Let) counts as private
    storage under the name ``%id``.  `control` is what decides whether and how often
    the statement runs: enclosing bounds, conditions and gates.  `data` are the names
    among both kinds of reads whose values make a difference: not those of votes.
    """

    stmt: Stmt
    loops: tuple[For | Repeat, ...]
    deps: Ids
    reads: frozenset[str]
    writes: frozenset[str]
    accesses: tuple[Access, ...]
    control_deps: Ids = NONE
    control_reads: frozenset[str] = frozenset()
    data: frozenset[str] = frozenset()
    inside: Ids = field(default=NONE)

    @property
    def stores_register(self) -> bool:
        """Whether this is a store to a register."""
        return (
            isinstance(self.stmt, Store | Stage)
            and self.stmt.buffer.space is MemSpace.REGISTER
        )


def read_names(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names that the values load, point into or take from a Let."""
    return frozenset().union(*map(_own_name, post_order(nodes)))


def _own_name(node: Node) -> frozenset[str]:
    if isinstance(node, Load | AddressOf):
        return frozenset({node.buffer.name})
    return frozenset({f"%{node.id}"}) if isinstance(node, Temp) else frozenset()


def is_vote(node: Node) -> bool:
    """Return whether a value is the same in all lanes, whatever it is made of."""
    return isinstance(node, Unary) and node.op is UnaryOp.ANY_LANE


def data_names(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the names that the values read, without what is only voted on."""
    names: set[str] = set()
    seen: set[int] = set()
    left = list(nodes)
    while left:
        node = left.pop()
        if id(node) in seen or is_vote(node):
            continue
        seen.add(id(node))
        names |= _own_name(node)
        left += children(node)
    return frozenset(names)


def read_accesses(nodes: Iterable[Node]) -> tuple[Access, ...]:
    """Return the loads and pointers among the values."""
    return tuple(
        Access(node.buffer, node.index, is_write=False, gate=_gate_of(node))
        for node in post_order(nodes)
        if isinstance(node, Load | AddressOf)
    )


def _gate_of(node: Load | AddressOf) -> Expr | None:
    return node.gate if isinstance(node, Load) else None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands."""

    loops: tuple[For | Repeat, ...] = ()
    inside: Ids = NONE
    control: tuple[Expr, ...] = ()


def collect_effects(kernel: Kernel, dependence: Dependence) -> list[Effect]:
    """Return the effects of a kernel in order: stores, calls, lets, conditions."""
    out: list[Effect] = []
    _collect(kernel.body, _Place(), dependence, out)
    return out


def _collect(
    block: Iterable[Stmt], place: _Place, dep: Dependence, out: list[Effect]
) -> None:
    for stmt in block:
        sources, written = _sources(stmt)
        if sources or written:
            out.append(_effect(stmt, sources, written, place, dep))
        if isinstance(stmt, ParallelStore):
            _collect(stmt.stores, place, dep, out)
        elif isinstance(stmt, For | Repeat | If):
            _collect(stmt.body, _inner(stmt, place), dep, out)


def _inner(stmt: For | Repeat | If, place: _Place) -> _Place:
    if isinstance(stmt, For):
        inside = place.inside | {axis.id for axis in stmt.axes}
        bounds = tuple(axis.size for axis in stmt.axes)
        return _Place((*place.loops, stmt), inside, (*place.control, *bounds))
    loops = (*place.loops, stmt) if isinstance(stmt, Repeat) else place.loops
    return _Place(loops, place.inside, (*place.control, stmt.cond))


def _sources(stmt: Stmt) -> tuple[tuple[Expr, ...], tuple[Access, ...]]:
    """Return what a statement itself reads, and the cells that it writes."""
    if isinstance(stmt, Store):
        gate = () if stmt.gate is None else (stmt.gate,)
        cell = Access(stmt.buffer, stmt.index, is_write=True, gate=stmt.gate)
        return (*stmt.index, stmt.value, *gate), (cell,)
    if isinstance(stmt, Stage):
        cell = Access(stmt.buffer, stmt.axes, is_write=True)
        return (*(axis.size for axis in stmt.axes), stmt.value), (cell,)
    if isinstance(stmt, OpaqueCall):
        written = [stmt.args[position] for position in stmt.writes]
        pointers = [arg for arg in written if isinstance(arg, AddressOf)]
        cells = tuple(Access(p.buffer, p.index, is_write=True) for p in pointers)
        return stmt.args, cells
    return _read_only(stmt), ()


def _read_only(stmt: Stmt) -> tuple[Expr, ...]:
    if isinstance(stmt, Let):
        return (stmt.value,)
    if isinstance(stmt, Repeat | If):
        return (stmt.cond,)
    if isinstance(stmt, For):
        return tuple(axis.size for axis in stmt.axes)
    return ()


def _effect(
    stmt: Stmt,
    sources: tuple[Expr, ...],
    written: tuple[Access, ...],
    place: _Place,
    dep: Dependence,
) -> Effect:
    writes = {access.buffer.name for access in written}
    if isinstance(stmt, Let):
        writes.add(f"%{stmt.temp.id}")
    deps = dep.of(*sources)
    if isinstance(stmt, Stage):
        deps -= {axis.id for axis in stmt.axes}
    return Effect(
        stmt=stmt,
        loops=place.loops,
        deps=deps,
        reads=read_names(sources),
        writes=frozenset(writes),
        accesses=(*read_accesses(sources), *written),
        control_deps=dep.of(*place.control),
        control_reads=read_names(place.control),
        data=data_names((*sources, *place.control)),
        inside=place.inside,
    )


def depending(
    effects: list[Effect], axis: int, private: frozenset[str]
) -> frozenset[int]:
    """Return the positions of the effects that depend on an axis.

    An effect inside the axis's loop depends on it if its data or control does, or if
    either reads private storage that a depending effect writes, to a fixed point.
    Effects outside the loop never do.  Without `private` this is the literal rule,
    under which a chain of registers hides the dependence.
    """
    found: set[int] = set()
    tainted: frozenset[str] = frozenset()
    grown = True
    while grown:
        grown = False
        for position, effect in enumerate(effects):
            if position in found or axis not in effect.inside:
                continue
            direct = axis in effect.deps or axis in effect.control_deps
            if direct or tainted & effect.data:
                found.add(position)
                tainted |= effect.writes & private
                grown = True
    return frozenset(found)
