"""Which thread runs what: single-thread stores, and the check of authored barriers.

Renderers and the interpreter ask `single_thread_axes` which stores one thread does for
all.  `verify_barriers` checks kernels whose author placed LOCAL axes and barriers; the
scheduler's rules do not look into those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchlas._kernels.affine import owner_keys
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    Barrier,
    For,
    If,
    Kernel,
    MemSpace,
    Repeat,
    Stage,
    Stmt,
    Store,
)
from batchlas._kernels.rules import Facts
from batchlas._kernels.walk import statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchlas._kernels.depend import Access, Effect

THREAD_ROLES = frozenset({AxisRole.GLOBAL, AxisRole.WARP, AxisRole.LOCAL})


def thread_axes(facts: Facts) -> list[Axis]:
    """Return the axes that number groups and threads; shared reductions are not."""
    return [
        axis
        for axis in facts.axes
        if axis.role in THREAD_ROLES and axis.id not in facts.reduce_ids
    ]


def single_thread_axes(facts: Facts) -> dict[int, tuple[Axis, ...]]:
    """Return, by ``id(store)``, the thread axes at whose step 0 alone a store runs.

    A memory store that does not depend on a thread axis runs in one of its threads.
    Registers are every thread's own, and each group has its own work-group memory.
    """
    found: dict[int, tuple[Axis, ...]] = {}
    yes = {axis.id: _dependents(facts, axis) for axis in thread_axes(facts)}
    for effect in facts.effects:
        if isinstance(effect.stmt, Store | Stage):
            space = effect.stmt.buffer.space
            found[id(effect.stmt)] = tuple(
                axis
                for axis in thread_axes(facts)
                if space is not MemSpace.REGISTER
                and not (space is MemSpace.LOCAL and axis.role is AxisRole.GLOBAL)
                and id(effect.stmt) not in yes[axis.id]
            )
    return found


def _dependents(facts: Facts, axis: Axis) -> set[int]:
    shared = facts.shared(axis, to_groups=axis.role is AxisRole.GLOBAL)
    return {id(effect.stmt) for effect in shared.yes}


def verify_barriers(kernel: Kernel) -> None:
    """Raise unless the barriers of authored LOCAL axes suffice and cannot deadlock.

    Raises
    ------
    ValueError
        If a write and a later access of one buffer, by possibly different threads of a
        group, have no barrier between (also around the end of a serial loop), or if a
        barrier stands under control flow that depends on a LOCAL axis.
    """
    facts = Facts(kernel)
    local = [axis for axis in thread_axes(facts) if axis.role is AxisRole.LOCAL]
    if local:
        _BarrierCheck(facts, local).run()


@dataclass(frozen=True, slots=True)
class _Touch:
    """An access since the last barrier, and the stores that one thread does."""

    access: Access
    by_one: bool


class _BarrierCheck:
    def __init__(self, facts: Facts, local: list[Axis]) -> None:
        self.facts = facts
        self.local = local
        self.effects: dict[int, Effect] = {id(e.stmt): e for e in facts.effects}
        self.single = single_thread_axes(facts)
        self.dependents: set[int] = set().union(*(_dependents(facts, a) for a in local))

    def run(self) -> None:
        self.block(self.facts.kernel.body, [], divergent=False)

    def block(
        self, body: Iterable[Stmt], pending: list[_Touch], *, divergent: bool
    ) -> list[_Touch]:
        for stmt in body:
            pending = self.statement(stmt, pending, divergent=divergent)
        return pending

    def statement(
        self, stmt: Stmt, pending: list[_Touch], *, divergent: bool
    ) -> list[_Touch]:
        if isinstance(stmt, Barrier):
            if divergent:
                msg = "a barrier under control flow that depends on a LOCAL axis"
                raise ValueError(msg)
            return []
        if not isinstance(stmt, Repeat):
            pending = self.touch(stmt, pending)
        if isinstance(stmt, For | Repeat | If):
            differs = divergent or self.diverges(stmt)
            passes = 2 if _is_serial(stmt) else 1
            for _ in range(passes):
                pending = self.block(stmt.body, pending, divergent=differs)
                if isinstance(stmt, Repeat):
                    pending = self.touch(stmt, pending)
        for store in getattr(stmt, "stores", ()):
            pending = self.touch(store, pending)
        return pending

    def diverges(self, stmt: For | Repeat | If) -> bool:
        if isinstance(stmt, Repeat) and stmt.uniform:
            return False
        return id(stmt) in self.dependents

    def touch(self, stmt: Stmt, pending: list[_Touch]) -> list[_Touch]:
        effect = self.effects.get(id(stmt))
        if effect is None:
            return pending
        one = bool({a.id for a in self.single.get(id(stmt), ())} & _ids(self.local))
        new = [
            _Touch(access, one)
            for access in effect.accesses
            if access.buffer.space is not MemSpace.REGISTER
        ]
        for later in new:
            for earlier in pending:
                self.compare(earlier, later)
            if later.access.is_write and not one:
                self.check_alone(effect, later.access)
        return [*pending, *new]

    def compare(self, a: _Touch, b: _Touch) -> None:
        same = a.access.buffer == b.access.buffer
        if not same or not (a.access.is_write or b.access.is_write):
            return
        if a.by_one and b.by_one:
            return
        owned = all(
            owner_keys(a.access.index, axis) & owner_keys(b.access.index, axis)
            for axis in self.local
        )
        if not owned:
            name = a.access.buffer.name
            msg = f"{name}: threads need a barrier between a write and another access"
            raise ValueError(msg)

    def check_alone(self, effect: Effect, access: Access) -> None:
        dep = self.facts.dependence.of(
            *access.index, getattr(effect.stmt, "gate", None)
        )
        if not dep & _ids(self.local):
            msg = f"{access.buffer.name}: every thread writes the same cell"
            raise ValueError(msg)


def _ids(axes: list[Axis]) -> set[int]:
    return {axis.id for axis in axes}


def _is_serial(stmt: Stmt) -> bool:
    if isinstance(stmt, For):
        return any(axis.role is AxisRole.LOOP for axis in stmt.axes)
    return isinstance(stmt, Repeat)


def has_barriers(kernel: Kernel) -> bool:
    """Return whether the author placed a barrier anywhere."""
    return any(isinstance(stmt, Barrier) for stmt in statements(kernel.body))
