"""The check of a whole kernel: what single nodes cannot see of each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    AddressOf,
    Axis,
    AxisRole,
    Buffer,
    Expr,
    For,
    If,
    Kernel,
    Let,
    MemSpace,
    Node,
    OpaqueCall,
    OpaqueValue,
    ParallelStore,
    Reduce,
    Repeat,
    ScalarArg,
    Stage,
    Stmt,
    Store,
    Temp,
)
from batchlas._kernels.kinds import reject
from batchlas._kernels.walk import children, post_order

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_kernel(kernel: Kernel) -> Kernel:
    """Return the kernel if it is well formed.

    Raises
    ------
    ValueError
        If a name stands for two things, an argument is not declared, an axis or a
        named value is read outside its scope, or an axis is closed twice.
    """
    _check_names(kernel)
    _Scopes().block(kernel.body, {}, frozenset())
    return kernel


def _check_names(kernel: Kernel) -> None:
    known: dict[str, Node] = {param.name: param for param in kernel.params}
    for node in post_order(kernel):
        if not isinstance(node, Buffer | ScalarArg):
            continue
        other = known.setdefault(node.name, node)
        if other != node:
            reject(f"{node.name} stands for two things: {other!r} and {node!r}")
        argument = isinstance(node, ScalarArg) or node.space is MemSpace.GLOBAL
        if argument and node not in kernel.params:
            reject(f"{node.name} is no argument of the kernel")


class _Scopes:
    """Walks a kernel with the axes and named values that each place may read."""

    def __init__(self) -> None:
        self.closed: dict[int, Axis] = {}
        self.named: set[int] = set()

    def block(
        self, block: Iterable[Stmt], axes: dict[int, Axis], temps: frozenset[int]
    ) -> frozenset[int]:
        for stmt in block:
            temps = self.statement(stmt, axes, temps)
        return temps

    def statement(
        self, stmt: Stmt, axes: dict[int, Axis], temps: frozenset[int]
    ) -> frozenset[int]:
        if isinstance(stmt, Let):
            self.expr(stmt.value, axes, temps)
            if stmt.temp.id in self.named:
                reject(f"{stmt.temp.name} is named twice")
            self.named.add(stmt.temp.id)
            return temps | {stmt.temp.id}
        if isinstance(stmt, For):
            self.block(stmt.body, self.open(stmt, axes, temps), temps)
        elif isinstance(stmt, Repeat):
            self.expr(stmt.cond, axes, self.block(stmt.body, axes, temps))
        elif isinstance(stmt, If):
            self.expr(stmt.cond, axes, temps)
            self.block(stmt.body, axes, temps)
        elif isinstance(stmt, Stage):
            self.expr(stmt.value, self.open(stmt, axes, temps), temps)
        elif isinstance(stmt, ParallelStore):
            self.block(stmt.stores, axes, temps)
        elif isinstance(stmt, Store | OpaqueCall):
            call = isinstance(stmt, OpaqueCall)
            for child in children(stmt):
                self.source(child, axes, temps, address=call)
        return temps

    def open(
        self, node: For | Stage | Reduce, axes: dict[int, Axis], temps: frozenset[int]
    ) -> dict[int, Axis]:
        inner = dict(axes)
        for axis in node.axes:
            shared = isinstance(node, Reduce) or axis.role is AxisRole.LOCAL
            self.expr(axis.size, inner, temps)
            if axis.role is AxisRole.PLACEHOLDER:
                reject(f"axis {axis.name} is a placeholder")
            again = axis.id in self.closed
            # thread axes may be opened by several phases, a sum may be used twice
            if again and (self.closed[axis.id] != axis or not shared):
                reject(f"axis {axis.name} is closed twice")
            self.closed[axis.id] = axis
            inner[axis.id] = axis
        return inner

    def source(
        self, node: Node, axes: dict[int, Axis], temps: frozenset[int], *, address: bool
    ) -> None:
        if isinstance(node, AddressOf) and not address:
            reject(f"the address of {node.buffer.name} outside a call's arguments")
        if isinstance(node, Reduce):
            self.expr(node.value, self.open(node, axes, temps), temps)
            return
        if isinstance(node, Axis):
            if axes.get(node.id) != node:
                reject(f"axis {node.name} is read outside its loop")
            return
        if isinstance(node, Temp) and node.id not in temps:
            reject(f"{node.name} is read outside its block")
        for child in children(node):
            call = isinstance(node, OpaqueValue)
            self.source(child, axes, temps, address=call)

    def expr(self, node: Expr, axes: dict[int, Axis], temps: frozenset[int]) -> None:
        self.source(node, axes, temps, address=False)
