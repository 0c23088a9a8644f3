"""Which thread runs what: renderers and the interpreter share the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    Barrier,
    Kernel,
    MemSpace,
    Stage,
    Store,
)
from batchlas._kernels.walk import statements

if TYPE_CHECKING:
    from batchlas._kernels.rules import Facts

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
    yes = {axis.id: dependents(facts, axis) for axis in thread_axes(facts)}
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


def dependents(facts: Facts, axis: Axis) -> set[int]:
    """Return the identities of the statements whose effect depends on the axis."""
    shared = facts.shared(axis, to_groups=axis.role is AxisRole.GLOBAL)
    return {id(effect.stmt) for effect in shared.yes}


def has_barriers(kernel: Kernel) -> bool:
    """Return whether the author placed a barrier anywhere."""
    return any(isinstance(stmt, Barrier) for stmt in statements(kernel.body))
