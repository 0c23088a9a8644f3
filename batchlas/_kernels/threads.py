"""Which thread runs what: renderers and the interpreter share the answer."""

from __future__ import annotations

from math import prod
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
from batchlas._kernels.names import POSITION
from batchlas._kernels.walk import launch_value, statements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from batchlas._kernels.rules import Facts

THREAD_ROLES = frozenset({AxisRole.GLOBAL, AxisRole.WARP, AxisRole.LOCAL})


def launch_axes(facts: Facts) -> tuple[list[Axis], list[Axis]]:
    """Return the axes that number the groups and the threads of a group, in order.

    The last one is the fastest: the linear number of a group is that of its axes' steps
    in row-major order, and so for threads.  Threads that share a reduction count.
    """
    groups = [a for a in facts.axes if a.role is AxisRole.GLOBAL]
    threads = [a for a in facts.axes if a.role in {AxisRole.WARP, AxisRole.LOCAL}]
    return (
        sorted(groups, key=lambda a: a.id),
        sorted(threads, key=lambda a: (POSITION[a.role], a.id)),
    )


def launch_shape(facts: Facts, scalars: Mapping[str, int]) -> tuple[int, int]:
    """Return the number of groups and of threads in a group for these scalars."""
    groups, threads = launch_axes(facts)
    return (
        prod(launch_value(axis.size, scalars) for axis in groups),
        prod(launch_value(axis.size, scalars) for axis in threads),
    )


def thread_axes(facts: Facts) -> list[Axis]:
    """Return the axes that number groups and threads; shared reductions are not."""
    return [
        axis
        for axis in facts.axes
        if axis.role in THREAD_ROLES and axis.id not in facts.reduce_ids
    ]


def single_thread_axes(
    facts: Facts, *, grouped: bool = True
) -> dict[int, tuple[Axis, ...]]:
    """Return, by ``id(store)``, the thread axes at whose step 0 alone a store runs.

    A memory store that does not depend on a thread axis runs in one of its threads.
    Registers are every thread's own, and each group has its own work-group memory.
    With `grouped` the axes of shared reductions are among them: all of a reduction's
    threads know its result, and one stores it.
    """
    shared = [a for a in launch_axes(facts)[1] if a.id in facts.reduce_ids]
    found: dict[int, tuple[Axis, ...]] = {}
    axes = thread_axes(facts) + (shared if grouped else [])
    yes = {axis.id: dependents(facts, axis) for axis in axes}
    for effect in facts.effects:
        if isinstance(effect.stmt, Store | Stage):
            space = effect.stmt.buffer.space
            found[id(effect.stmt)] = tuple(
                axis
                for axis in axes
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
