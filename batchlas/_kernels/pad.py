"""PadTo: grow an axis, guard what it indexes, mask what sums over it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from batchlas._kernels.depend import read_names
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    BinaryOp,
    Const,
    DType,
    Expr,
    For,
    Kernel,
    Load,
    MemSpace,
    Node,
    OpaqueCall,
    OpaqueValue,
    Reduce,
    ReduceOp,
    Repeat,
    Select,
    Stage,
    Stmt,
    Store,
    binary,
    index_const,
)
from batchlas._kernels.rules import Facts
from batchlas._kernels.walk import const_int, map_children, post_order, substitute

if TYPE_CHECKING:
    from collections.abc import Callable

_UNPADDED = {AxisRole.UPCAST, AxisRole.VECTOR, AxisRole.WARP, AxisRole.LOCAL}


def pad_conflict(kernel: Kernel, axis: Axis, amount: int) -> str | None:
    """Return why the axis cannot grow to a multiple of the amount, or None."""
    size = const_int(axis.size)
    if size is None:
        return "only an axis of constant size can be padded"
    if amount <= 1:
        return f"pad to a multiple of {amount}"
    if axis.role in _UNPADDED:
        return f"a {axis.role.name} axis cannot be padded"
    grown = -(-size // amount) * amount
    if size <= grown // 4:
        return f"padding {size} to {grown} more than quadruples it"
    return _unguardable(kernel, axis)


def _unguardable(kernel: Kernel, axis: Axis) -> str | None:
    for node in post_order(kernel):
        if isinstance(node, Stage) and axis in node.axes:
            return f"the guard cannot keep {node.buffer.name} inside its size"
        if isinstance(node, For | Reduce) and axis in node.axes:
            inside = post_order(node)
            if any(isinstance(n, OpaqueCall | OpaqueValue) for n in inside):
                return "the axis encloses a call, which no guard makes a no-op"
    return None


def pad_axis(kernel: Kernel, axis: Axis, amount: int) -> tuple[Kernel, Axis]:
    """Return the kernel with the axis grown, and the grown axis.

    ``for i in 6: x[i] = sum(k, y[i, k])`` padded to 8 becomes ``for i in 8:
    if i < 6: x[i] = sum(k, y[i, k] if i < 6 else 0)``.  Stores inside the loop are
    gated, loads that the axis indexes are gated, a reduction over the axis takes its
    identity where the axis is beyond its old size, and a Repeat runs once there.
    """
    size = const_int(axis.size) or 0
    grown = replace(axis, size=index_const(-(-size // amount) * amount))
    kernel = substitute(kernel, {axis.id: grown})
    guard = binary(BinaryOp.LT, grown, size)
    return _Guards(kernel, grown, guard).visit_kernel(), grown


class _Guards:
    """Adds one guard to what the grown axis encloses."""

    def __init__(self, kernel: Kernel, axis: Axis, guard: Expr) -> None:
        self.kernel = kernel
        self.axis = axis
        self.guard = guard
        self.facts = Facts(kernel)
        shared = self.facts.shared(axis, to_groups=False)
        self.own = frozenset().union(*(e.writes for e in shared.yes)) & shared.private

    def visit_kernel(self) -> Kernel:
        return self.memoised(self.outside)(self.kernel)  # type: ignore[return-value]

    def memoised(
        self, step: Callable[[Node, Callable[[Node], Node]], Node]
    ) -> Callable[[Node], Node]:
        memo: dict[int, Node] = {}

        def visit(node: Node) -> Node:
            known = memo.get(id(node))
            if known is None:
                known = memo[id(node)] = step(node, visit)
            return known

        return visit

    def outside(self, node: Node, visit: Callable[[Node], Node]) -> Node:
        if isinstance(node, For) and self.axis in node.axes:
            inside = self.memoised(self.inside)
            body = tuple(cast("Stmt", inside(stmt)) for stmt in node.body)
            return replace(node, body=body)
        if isinstance(node, Reduce) and self.axis in node.axes:
            value = cast("Expr", self.memoised(self.inside)(node.value))
            masked = Select(self.guard, value, identity(node.op, value.dtype))
            return replace(node, value=masked)
        return map_children(node, visit)

    def inside(self, node: Node, visit: Callable[[Node], Node]) -> Node:
        new = map_children(node, visit)
        if isinstance(new, Load | Store) and self.needs_gate(node):
            return replace(new, gate=self.joined(new.gate))
        if isinstance(new, Repeat):
            return replace(new, cond=self.joined(new.cond))
        return new

    def needs_gate(self, access: Node) -> bool:
        """Return whether the access could leave its buffer or do harm.

        A step of an independent axis overwrites no register that another step reads,
        and a padded step must not read one that it did not write, so those stores stay.
        """
        if not isinstance(access, Load | Store):
            return False
        if isinstance(access, Store):
            register = access.buffer.space is MemSpace.REGISTER
            if not register or self.axis.role is AxisRole.LOOP:
                return True
        depends = self.axis.id in self.facts.dependence.of(*access.index)
        return depends or bool(read_names(access.index) & self.own)

    def joined(self, gate: Expr | None) -> Expr:
        return self.guard if gate is None else self.guard & gate


def identity(op: ReduceOp, dtype: DType) -> Const:
    """Return the value that a reduction ignores."""
    if op is ReduceOp.ADD:
        return Const(0, dtype)
    if op is ReduceOp.MUL:
        return Const(1, dtype)
    if dtype.is_int:
        return Const(-(2 ** (8 * dtype.itemsize - 1)), dtype)
    return Const(float("-inf"), dtype)
