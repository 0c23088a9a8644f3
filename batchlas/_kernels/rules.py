"""Which axes take lanes and which take threads.

Lanes share one copy of every register and one trip count, so bounds, conditions and
register stores forbid them.  Threads run unordered with the code outside their axis, so
shared storage forbids those.  Each rule returns the reason of a refusal or None.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from batchlas._kernels.affine import linear, owner_keys
from batchlas._kernels.depend import (
    NONE,
    Dependence,
    Effect,
    Ids,
    collect_effects,
    data_names,
    depending,
    is_vote,
    read_names,
)
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    For,
    If,
    Kernel,
    Load,
    MemSpace,
    OpaqueCall,
    OpaqueValue,
    Reduce,
    Repeat,
)
from batchlas._kernels.walk import (
    axes_in,
    buffers,
    children,
    closed_axes,
    post_order,
    statements,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    Rule = Callable[["Facts", Axis, "Shared"], str | None]


class Facts:
    """What the rules ask of one kernel, computed once and on demand."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.dependence = Dependence(kernel)

    @cached_property
    def effects(self) -> list[Effect]:
        """The kernel's effects in order."""
        return collect_effects(self.kernel, self.dependence)

    @cached_property
    def axes(self) -> list[Axis]:
        """Every axis that something closes."""
        return closed_axes(self.kernel)

    @cached_property
    def reduce_ids(self) -> Ids:
        """The axes that a reduction closes."""
        nodes = post_order(self.kernel)
        return frozenset(a.id for n in nodes if isinstance(n, Reduce) for a in n.axes)

    @cached_property
    def read_by_bounds(self) -> Ids:
        """The axes that the size of some axis reads, through sizes as well."""
        sizes = [axis.size for axis in self.axes]
        named = frozenset(axis.id for axis in axes_in(sizes))
        return named | self.dependence.of(*sizes)

    @cached_property
    def opaque(self) -> list[OpaqueCall | OpaqueValue]:
        """The calls of code that the compiler does not see into."""
        nodes = post_order(self.kernel)
        return [n for n in nodes if isinstance(n, OpaqueCall | OpaqueValue)]

    @cached_property
    def read_by_opaque(self) -> Ids:
        """The axes that a source of some opaque operation depends on."""
        return frozenset().union(*(self._opaque_reads(call) for call in self.opaque))

    @cached_property
    def unread_by_opaque(self) -> Ids:
        """The axes that some opaque operation does not read."""
        every = frozenset(axis.id for axis in self.axes)
        return NONE.union(*(every - self._opaque_reads(call) for call in self.opaque))

    def _opaque_reads(self, call: OpaqueCall | OpaqueValue) -> Ids:
        named = frozenset(axis.id for axis in axes_in(call.args))
        return named | self.dependence.of(*call.args)

    @cached_property
    def no_lanes(self) -> Ids:
        """The axes that a register store or a loop's condition depends on."""
        found = NONE
        for effect in self.effects:
            if effect.stores_register or isinstance(effect.stmt, Repeat | If):
                found |= effect.deps
        return found

    @cached_property
    def voted(self) -> Ids:
        """The axes that a vote of vector lanes depends on."""
        votes = [node for node in post_order(self.kernel) if is_vote(node)]
        return self.dependence.of(
            *(child for vote in votes for child in children(vote))
        )

    @cached_property
    def memory(self) -> frozenset[str]:
        """The names of buffers that threads share: global and work-group memory."""
        every = buffers(self.kernel)
        return frozenset(b.name for b in every if b.space is not MemSpace.REGISTER)

    @cached_property
    def written(self) -> frozenset[str]:
        """The names of all storage that the kernel writes."""
        return frozenset().union(*(effect.writes for effect in self.effects))

    def private(self, *, to_groups: bool) -> frozenset[str]:
        """Return the storage that no two threads share, or no two groups."""
        names = {b.name for b in buffers(self.kernel) if b.space in _PRIVATE[to_groups]}
        names |= {n for e in self.effects for n in e.writes if n.startswith("%")}
        return frozenset(names)

    def shared(self, axis: Axis, *, to_groups: bool) -> Shared:
        """Return which effects depend on the axis, for one way of spreading it."""
        private = self.private(to_groups=to_groups)
        found = depending(self.effects, axis.id, private)
        return Shared(self.effects, found, private, self.memory - private)

    def thread_conflict(self, axis: Axis, *, to_groups: bool = False) -> str | None:
        """Return why the axis takes no threads of a group (or no groups), or None."""
        if axis.id in self.unread_by_opaque:
            return "an opaque operation does not read the axis"
        shared = self.shared(axis, to_groups=to_groups)
        for rule in THREAD_RULES.values():
            reason = rule(self, axis, shared)
            if reason is not None:
                return reason
        return None if to_groups else clobbers(self, axis)

    def lane_conflict(self, axis: Axis) -> str | None:
        """Return why the axis takes no lanes, or None."""
        if axis.id in self.read_by_bounds:
            return "a bound reads the axis"
        if axis.id in self.read_by_opaque:
            return "an opaque operation reads the axis"
        if axis.id in self.no_lanes:
            return "a register store or a condition depends on the axis"
        if axis.id in self.voted:
            return "lanes of the axis would have to vote"
        return clobbers(self, axis)


_PRIVATE = {
    False: frozenset({MemSpace.REGISTER}),
    True: frozenset({MemSpace.REGISTER, MemSpace.LOCAL}),
}


class Shared:
    """The effects of a kernel, split by whether they depend on one axis."""

    def __init__(
        self,
        effects: list[Effect],
        depends: frozenset[int],
        private: frozenset[str],
        memory: frozenset[str],
    ) -> None:
        self.yes = [e for i, e in enumerate(effects) if i in depends]
        self.no = [e for i, e in enumerate(effects) if i not in depends]
        self.private = private
        self.memory = memory


def shares_memory(_facts: Facts, axis: Axis, shared: Shared) -> str | None:
    """Rule a: code on both sides of the axis touches one storage, one side writes."""
    inner, outer = _touched(shared.yes), _touched(shared.no)
    hit = (inner.all & outer.written) | (inner.written & outer.all)
    if hit & shared.memory:
        return f"{axis.name} shares {min(hit & shared.memory)} with code outside it"
    return None


class _Names(NamedTuple):
    written: frozenset[str]
    all: frozenset[str]


def _touched(effects: list[Effect]) -> _Names:
    written = frozenset().union(*(e.writes for e in effects))
    return _Names(written, written.union(*(e.reads for e in effects)))


def leaves_register(_facts: Facts, axis: Axis, shared: Shared) -> str | None:
    """Rule b: code outside reads a register that a step of the axis wrote.

    A vote inside the axis's loop reads it too, of all lanes, and is the same in all.
    """
    written = frozenset().union(*(e.writes for e in shared.yes)) & shared.private
    for outer in shared.no:
        inside = axis.id in outer.inside
        hit = (outer.data if inside else outer.reads) & written
        if hit:
            return f"{min(hit)} holds the last step of {axis.name}"
    return None


def reads_back(facts: Facts, axis: Axis, shared: Shared) -> str | None:
    """Rule X1: one thread stores what all threads read, with no barrier between."""
    if axis.id in facts.reduce_ids:
        return None  # asked of a grouped reduction by `group_conflict`
    return _read_back(axis, shared)


def _read_back(axis: Axis, shared: Shared) -> str | None:
    stored = frozenset().union(*(e.writes for e in shared.no)) & shared.memory
    for effect in shared.no:
        hit = effect.reads & stored
        if hit:
            return f"threads of {axis.name} would read {min(hit)} back from one thread"
    return None


def carries(_facts: Facts, axis: Axis, shared: Shared) -> str | None:
    """Rule X2: a serial loop around the axis carries memory between its steps."""
    for name in sorted(shared.memory):
        readers = [e for e in shared.yes if name in e.reads]
        writers = [e for e in shared.yes if name in e.writes]
        loops = [_serial_around(e, axis) for e in readers]
        if not any(outer & _serial_around(w, axis) for outer in loops for w in writers):
            continue
        cells = [
            owner_keys(access.index, axis)
            for effect in shared.yes
            for access in effect.accesses
            if access.buffer.name == name
        ]
        if not frozenset.intersection(*cells):
            return f"a loop around {axis.name} carries {name} between its steps"
    return None


def _serial_around(effect: Effect, axis: Axis) -> frozenset[int]:
    """Return identities of the serial loops of an effect that enclose the axis."""
    found: set[int] = set()
    for loop in effect.loops:
        if isinstance(loop, Repeat):
            found.add(id(loop))
            continue
        if any(a.role is AxisRole.LOOP for a in loop.axes):
            found.add(id(loop))
        if axis.id in {a.id for a in loop.axes}:
            break
    return frozenset(found)


THREAD_RULES: dict[str, Rule] = {
    "a": shares_memory,
    "b": leaves_register,
    "X1": reads_back,
    "X2": carries,
}


def group_conflict(facts: Facts, axis: Axis) -> str | None:
    """Return why threads cannot share the reduction over an axis, or None.

    A bound that reads an axis may differ between threads, and some would wait at the
    reduction's barrier for ever.  Inside an unrolled reduction each copy would need a
    barrier of its own.  X3: what one thread stored, all would sum.
    """
    if facts.read_by_bounds:
        return "a bound reads an axis, threads would wait for each other"
    for stmt in statements(facts.kernel.body):
        conditional = isinstance(stmt, Repeat | If)
        if conditional and axis.id in {a.id for a in closed_axes(stmt)}:
            return "the reduction runs under a condition, threads would wait"
    for node in post_order(facts.kernel):
        if not isinstance(node, Reduce):
            continue
        inner = [n for n in post_order(node.value) if isinstance(n, Reduce)]
        unrolled = any(a.role is AxisRole.UPCAST for a in node.axes)
        if unrolled and any(axis.id in {a.id for a in r.axes} for r in inner):
            return "the reduction runs inside an unrolled reduction"
        if axis.id in {a.id for a in node.axes}:
            hit = facts.written & facts.memory & _loaded(node)
            if hit:
                return f"the reduction sums {min(hit)}, which this kernel writes"
    return _read_back(axis, facts.shared(axis, to_groups=False))


def _loaded(node: Reduce) -> frozenset[str]:
    loads = (n for n in post_order(node.value) if isinstance(n, Load))
    return frozenset(load.buffer.name for load in loads)


def vector_conflict(facts: Facts, axis: Axis) -> str | None:
    """Return why an axis cannot be lanes of vector registers, or None.

    Every access must be a splat or have a constant stride in the axis; registers and
    conditions are free, for each lane has its own.
    """
    if axis.id in facts.read_by_bounds:
        return "a bound reads the axis"
    if facts.opaque:
        return "an opaque operation cannot be masked"
    if axis.id in facts.reduce_ids:
        return "a reduction closes the axis"
    shared = facts.shared(axis, to_groups=False)
    return (
        leaves_register(facts, axis, shared)
        or clobbers(facts, axis)
        or _gathers(facts, axis, shared)
    )


def _gathers(facts: Facts, axis: Axis, shared: Shared) -> str | None:
    own = frozenset().union(*(e.writes for e in shared.yes)) & shared.private
    for effect in shared.yes:
        sizes = effect.stmt.axes if isinstance(effect.stmt, For) else ()
        if data_names(axis.size for axis in sizes) & own:
            return "a bound reads a register that differs between lanes"
        for access in effect.accesses:
            if access.buffer.space is MemSpace.REGISTER and not access.is_write:
                continue  # each lane may read its own cells in its own order
            others = [term for expr in access.index for term in linear(expr).others]
            if axis.id in facts.dependence.of(*others) or read_names(others) & own:
                return f"{access.buffer.name} has no constant stride in the axis"
    return None


def clobbers(facts: Facts, axis: Axis) -> str | None:
    """Return why steps of the axis cannot share one group's memory, or None.

    Serial steps may reuse a work-group buffer; steps at once may write one only if
    each cell belongs to one step.
    """
    writes: dict[str, list[frozenset[tuple[object, ...]]]] = {}
    for effect in facts.effects:
        if axis.id not in effect.inside:
            continue
        for access in effect.accesses:
            if access.is_write and access.buffer.space is MemSpace.LOCAL:
                keys = owner_keys(access.index, axis)
                writes.setdefault(access.buffer.name, []).append(keys)
    for name, cells in writes.items():
        if not frozenset.intersection(*cells):
            return f"steps of {axis.name} write the same cells of {name}"
    return None
