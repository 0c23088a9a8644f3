"""The check of kernels whose author placed LOCAL axes and barriers.

The scheduler's rules do not look into those; this verifier asks for a barrier between
any write and any other access of a shared buffer by possibly different threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchlas._kernels.affine import owner_keys
from batchlas._kernels.depend import read_names
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    Barrier,
    Binary,
    BinaryOp,
    Expr,
    For,
    If,
    Kernel,
    MemSpace,
    ParallelStore,
    Repeat,
    Stmt,
)
from batchlas._kernels.rules import Facts
from batchlas._kernels.threads import dependents, single_thread_axes, thread_axes
from batchlas._kernels.walk import statements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from batchlas._kernels.depend import Access, Effect

_UNIFORM = frozenset({AxisRole.LOOP, AxisRole.GLOBAL})  # same for all threads


def verify_barriers(kernel: Kernel) -> None:
    """Raise unless the barriers of authored LOCAL axes suffice and cannot deadlock.

    Ask this of a kernel whose outermost axes have become global: an axis that is still
    weak is a loop in every thread, whose steps would share the group's memory.

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
    """An access since the last barrier."""

    access: Access
    by_one: bool  # a store that one thread does for all
    passes: tuple[int, ...]  # which pass through each serial loop around it


class _BarrierCheck:
    def __init__(self, facts: Facts, local: list[Axis]) -> None:
        self.facts = facts
        self.local = local
        self.effects: dict[int, Effect] = {id(e.stmt): e for e in facts.effects}
        self.single = single_thread_axes(facts)
        self.passes: list[int] = []
        self.uniform = {a.id for a in facts.axes if a.role in _UNIFORM}
        self.dependents: set[int] = set().union(*(dependents(facts, a) for a in local))

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
            # twice through a serial loop, to see its end meet its beginning
            for number in range(2 if _is_serial(stmt) else 1):
                self.passes.append(number)
                pending = self.block(stmt.body, pending, divergent=differs)
                if isinstance(stmt, Repeat):
                    pending = self.touch(stmt, pending)
                self.passes.pop()
        for store in stmt.stores if isinstance(stmt, ParallelStore) else ():
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
        one = _ids(self.local) <= {a.id for a in self.single.get(id(stmt), ())}
        new = [
            _Touch(access, one, tuple(self.passes))
            for access in effect.accesses
            if access.buffer.space is not MemSpace.REGISTER
        ]
        for number, later in enumerate(new):
            # also with the other accesses of its own statement: threads are not at
            # the same place of it
            for earlier in [*pending, *new[:number]]:
                self.compare(earlier, later)
            if later.access.is_write and not one:
                self.check_alone(later.access)
        return [*pending, *new]

    def compare(self, a: _Touch, b: _Touch) -> None:
        same = a.access.buffer == b.access.buffer
        if not same or not (a.access.is_write or b.access.is_write):
            return
        if (a.by_one and b.by_one) or self.apart(a, b) or self.apart(b, a):
            return
        owned = all(
            owner_keys(a.access.index, axis) & owner_keys(b.access.index, axis)
            for axis in self.local
        )
        if not owned:
            name = a.access.buffer.name
            msg = f"{name}: threads need a barrier between a write and another access"
            raise ValueError(msg)

    def apart(self, a: _Touch, b: _Touch) -> bool:
        """Return whether a's gate keeps it off b's cell in one pass of all loops.

        The gate ``i > j`` of ``w[i, j]`` keeps it off ``w[j, j]``, provided that all
        threads have the same j.
        """
        if a.passes != b.passes:
            return False
        strict = _strict_pairs(a.access.gate)
        for mine, other in zip(a.access.index, b.access.index, strict=True):
            same = self.facts.dependence.of(other) <= self.uniform
            if same and not read_names((other,)) and (mine, other) in strict:
                return True
        return False

    def check_alone(self, access: Access) -> None:
        dep = self.facts.dependence.of(*access.index, access.gate)
        if not dep & _ids(self.local):
            msg = f"{access.buffer.name}: every thread writes the same cell"
            raise ValueError(msg)


def _strict_pairs(gate: Expr | None) -> set[tuple[Expr, Expr]]:
    """Return the pairs of values that a gate keeps unequal."""
    if not isinstance(gate, Binary):
        return set()
    if gate.op is BinaryOp.AND:
        return _strict_pairs(gate.a) | _strict_pairs(gate.b)
    if gate.op in {BinaryOp.LT, BinaryOp.GT, BinaryOp.NE}:
        return {(gate.a, gate.b), (gate.b, gate.a)}
    return set()


def _ids(axes: list[Axis]) -> set[int]:
    return {axis.id for axis in axes}


def _is_serial(stmt: Stmt) -> bool:
    """Return whether a thread runs the steps one after the other.

    It may as well where they are independent, but only a barrier inside makes steps of
    different threads meet.
    """
    if not isinstance(stmt, For):
        return isinstance(stmt, Repeat)
    roles = {axis.role for axis in stmt.axes}
    met = any(isinstance(inner, Barrier) for inner in statements(stmt.body))
    return AxisRole.LOOP in roles or (AxisRole.WEAK in roles and met)
