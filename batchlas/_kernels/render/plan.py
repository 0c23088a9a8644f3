"""What printing a kernel needs to know beforehand: threads, lanes, guards, storage."""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

from batchlas._kernels.affine import linear
from batchlas._kernels.depend import data_names, read_names
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    Barrier,
    Binary,
    BinaryOp,
    Buffer,
    Expr,
    If,
    MemSpace,
    Reduce,
    Repeat,
    Stage,
    Store,
    index_const,
)
from batchlas._kernels.render.rendered import RenderError
from batchlas._kernels.rules import Facts
from batchlas._kernels.split import is_grouped
from batchlas._kernels.threads import dependents
from batchlas._kernels.walk import buffers, const_int, fold, post_order, statements

if TYPE_CHECKING:
    from batchlas._kernels.ir import Kernel, Stmt

_UNPRINTED = {AxisRole.DEVICE, AxisRole.WARP, AxisRole.PLACEHOLDER}


class Plan:
    """Facts of one optimised kernel, for one target."""

    def __init__(self, kernel: Kernel, *, uniform_exit: bool) -> None:
        self.kernel = kernel
        self.uniform_exit = uniform_exit
        self.facts = Facts(kernel)
        for axis in self.facts.axes:
            if axis.role in _UNPRINTED:
                msg = f"axis {axis.name}: no renderer prints {axis.role.name} axes"
                raise RenderError(msg)

    def _axes(self, role: AxisRole) -> list[Axis]:
        return sorted(
            (axis for axis in self.facts.axes if axis.role is role),
            key=lambda axis: axis.id,
        )

    @cached_property
    def group_axes(self) -> list[Axis]:
        """The axes across work-groups, the fastest last."""
        return self._axes(AxisRole.GLOBAL)

    @cached_property
    def thread_axes(self) -> list[Axis]:
        """The axes across the threads of a group, the fastest last."""
        return self._axes(AxisRole.LOCAL)

    @cached_property
    def vector_axis(self) -> Axis | None:
        """The axis across vector lanes, if any."""
        found = self._axes(AxisRole.VECTOR)
        if len(found) > 1:
            msg = f"two vector axes: {found[0].name} and {found[1].name}"
            raise RenderError(msg)
        return found[0] if found else None

    @cached_property
    def lanes(self) -> int:
        """Lanes of the kernel's vectors, 1 if it has none."""
        return 1 if self.vector_axis is None else size_of(self.vector_axis)

    @cached_property
    def threads(self) -> int:
        """Threads of a work-group."""
        return prod(size_of(axis) for axis in self.thread_axes)

    @cached_property
    def group_size(self) -> int:
        """The work-group size to ask for, 0 to leave it to the runtime.

        Without thread axes a work-item stands alone.  Then the runtime may form groups
        as it likes, unless threads of a group would have to leave a loop together.
        """
        every = list(statements(self.kernel.body))
        meets = any(isinstance(stmt, Repeat | Barrier) for stmt in every)
        return self.threads if self.thread_axes or meets else 0

    @cached_property
    def groups(self) -> Expr:
        """The number of work-groups, an expression of the scalar arguments."""
        total: Expr = index_const(1)
        for axis in self.group_axes:
            total = total * axis.size
        return fold(total)

    @cached_property
    def written(self) -> frozenset[str]:
        """The names of the buffers that the kernel writes."""
        return self.facts.written

    @cached_property
    def storage(self) -> list[Buffer]:
        """The buffers that live inside the kernel."""
        every = buffers(self.kernel)
        return [b for b in every if b.space is not MemSpace.GLOBAL]

    @cached_property
    def varying(self) -> frozenset[str]:
        """Registers and named values that hold one value for each lane."""
        if self.vector_axis is None:
            return frozenset()
        shared = self.facts.shared(self.vector_axis, to_groups=False)
        names = frozenset().union(*(e.writes for e in shared.yes))
        return names & shared.private

    @cached_property
    def has_masks(self) -> bool:
        """Whether lanes may part: some condition differs between them."""
        return any(
            isinstance(stmt, Repeat | If)
            and self.varies(stmt.cond)
            and not (isinstance(stmt, If) and self.is_tail(stmt))
            for stmt in statements(self.kernel.body)
        )

    def varies(self, expr: Expr) -> bool:
        """Return whether a value differs between the lanes."""
        if self.vector_axis is None:
            return False
        deps = self.facts.dependence.of(expr)
        return self.vector_axis.id in deps or bool(data_names([expr]) & self.varying)

    def is_tail(self, stmt: If) -> bool:
        """Return whether ``x + lane < end`` only cuts off lanes past the end.

        Such lanes may repeat the last one, if what they hold stays in the block.
        """
        axis, cond = self.vector_axis, stmt.cond
        if axis is None or not isinstance(cond, Binary) or cond.op is not BinaryOp.LT:
            return False
        form = linear(cond.a)
        plain = form.coefficient(axis.id) == 1 and not any(
            self.varies(part) for part in (cond.b, *form.others)
        )
        return plain and not self.crosses(stmt)

    def crosses(self, stmt: If) -> bool:
        """Return whether code in a block and code outside it share a lane's storage."""
        if self.vector_axis is None:
            return False
        inside = {id(inner) for inner in statements(stmt.body)}
        mine: set[str] = set()
        others: set[str] = set()
        for effect in self.facts.effects:
            side = mine if id(effect.stmt) in inside else others
            side |= effect.reads | effect.writes
        kept = self.varying | {b.name for b in self.storage}
        return bool(mine & others & kept)

    def is_uniform(self, expr: Expr) -> bool:
        """Return whether a condition surely is the same in all threads of a group."""
        deps = self.facts.dependence.of(expr)
        return not (deps & {a.id for a in self.thread_axes} or read_names([expr]))

    @cached_property
    def guards(self) -> dict[int, list[Axis]]:
        """For each memory store, by id: the axes at whose step 0 alone it runs.

        A store that does not depend on a group or thread axis runs in one of them.
        """
        found: dict[int, list[Axis]] = {}
        for axis in (*self.group_axes, *self.thread_axes):
            depends = dependents(self.facts, axis)
            of_group = axis.role is AxisRole.GLOBAL
            for effect in self.facts.effects:
                stmt = effect.stmt
                if isinstance(stmt, Store | Stage) and id(stmt) not in depends:
                    space = stmt.buffer.space
                    own = space is MemSpace.LOCAL and of_group
                    if space is not MemSpace.REGISTER and not own:
                        found.setdefault(id(stmt), []).append(axis)
        return found

    def meets(self, stmt: Stmt) -> bool:
        """Return whether threads of the group wait for each other in a statement."""
        if self.threads == 1:
            return False
        return any(
            isinstance(node, Barrier)
            or (isinstance(node, Reduce) and is_grouped(node))
            or (isinstance(node, Repeat) and self.exits_together(node))
            for node in post_order(stmt)
        )

    def exits_together(self, stmt: Repeat) -> bool:
        """Return whether threads of a group leave this loop together."""
        return self.threads > 1 and (stmt.uniform or self.uniform_exit)


def size_of(axis: Axis) -> int:
    """Return the size of an axis that must be constant to be printed."""
    size = const_int(fold(axis.size))
    if size is None:
        msg = f"axis {axis.name}: {axis.role.name} axes need a constant size"
        raise RenderError(msg)
    return size
