"""Statements in order: a kernel's loop nest as the lines of one target.

The walk carries one environment for each copy of the code (a combination of unrolled
axes).  Loops, register stores and conditions are written once, for all copies; other
statements once for each.  A mask is a condition under which the stores of a block
happen where the block itself must run: finished lanes of a vector, threads that wait
for the others of their group.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    INDEX,
    Axis,
    AxisRole,
    Barrier,
    BinaryOp,
    Expr,
    For,
    If,
    Let,
    MemSpace,
    OpaqueCall,
    ParallelStore,
    Prefetch,
    Reduce,
    Repeat,
    Stage,
    Store,
)
from batchlas._kernels.render.control import Control
from batchlas._kernels.render.reduce import Reductions, spread
from batchlas._kernels.render.tile import Tiles
from batchlas._kernels.render.values import Lanes, Scope, Value
from batchlas._kernels.split import is_grouped
from batchlas._kernels.walk import const_int, fold, post_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.ir import Block, Stmt
    from batchlas._kernels.render.memory import Cells
    from batchlas._kernels.render.session import Session
    from batchlas._kernels.render.values import Env


class Lowering:
    """Writes the statements of one kernel."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.plan = session.plan
        self.dialect = session.dialect
        self.writer = session.writer
        self.ex = session.expressions
        self.memory = session.memory
        self.sums = Reductions(session)
        self.control = Control(self)
        self.tiles = Tiles(self)
        self._writers: dict[type, Callable[..., Scope | None]] = {
            Let: self._let,
            Store: self._store,
            ParallelStore: self._parallel,
            Stage: self._stage,
            For: self._for,
            If: self.control.guard,
            Repeat: self.control.repeat,
            Barrier: self._barrier,
            Prefetch: self._prefetch,
            OpaqueCall: self._call,
        }

    def block(self, block: Block, scope: Scope) -> Scope:
        """Write statements in order; return the scope with their named values."""
        at = 0
        while at < len(block):
            if self.tiles.starts(block, at, scope):
                scope, at = self.tiles.write(block, at, scope)
            else:
                scope = self._statement(block[at], scope)
                at += 1
        return scope

    def _statement(self, stmt: Stmt, scope: Scope) -> Scope:
        mask = scope.mask
        skips = mask is not None and mask.lanes == 1 and not isinstance(stmt, Let)
        if mask is not None and skips and not self.plan.meets(stmt):
            with self.session.conditional(mask.text):
                self._writers[type(stmt)](stmt, scope.under(None))
            return scope
        return self._writers[type(stmt)](stmt, scope) or scope

    # values and stores

    def _let(self, stmt: Let, scope: Scope) -> Scope:
        envs = []
        hoisted = self.sums.hoist([stmt.value], scope.envs)
        for env, plain in zip(hoisted, scope.envs, strict=True):
            value = self.ex.declared(self.ex.value(stmt.value, env), stmt.temp.name)
            envs.append(plain.with_temp(stmt.temp.id, value))
        return scope.with_envs(envs)

    def _store(self, stmt: Store, scope: Scope) -> None:
        envs = self.sums.hoist([stmt.gate], self._copies(stmt, scope))
        gates = [self._gate(stmt, env) for env in envs]
        shared = gates[0] if gates.count(gates[0]) == len(gates) else None
        early = self.ex.both(self._guard(stmt), shared)
        if early is not None and early.lanes > 1:
            shared, early = None, self._guard(stmt)
        waits = any(isinstance(n, Reduce) and is_grouped(n) for n in post_order(stmt))
        if waits:
            envs = self.sums.hoist(sources(stmt), envs)
        with self.session.conditional(None if early is None else early.text):
            envs = self.sums.hoist(sources(stmt), envs)
            for env, gate in zip(envs, gates, strict=True):
                mask = scope.mask if shared else self.ex.both(scope.mask, gate)
                self._write(stmt, env, mask)

    def _write(self, stmt: Store, env: Env, mask: Value | None) -> None:
        cells = self.memory.cells(stmt.buffer, stmt.index, env)
        value = self.ex.value(stmt.value, env)
        in_memory = stmt.buffer.space is not MemSpace.REGISTER
        if value.dtype.is_complex or (in_memory and value.lanes > 1):
            value = self.ex.named(value)
        mask = None if mask is None else self.ex.named(mask, "mask")
        self.memory.store(cells, value, mask)

    def _parallel(self, stmt: ParallelStore, scope: Scope) -> None:
        ready: list[tuple[Cells, Value, Value | None]] = []
        for store in stmt.stores:
            envs = self._copies(store, scope)
            for env in self.sums.hoist((*sources(store), store.gate), envs):
                gate = self.ex.both(self._guard(store), self._gate(store, env))
                mask = self.ex.both(scope.mask, gate)
                mask = None if mask is None else self.ex.declared(mask, "mask")
                value = self.ex.declared(self.ex.value(store.value, env), "new")
                cells = self.memory.cells(store.buffer, store.index, env)
                ready.append((self._kept(cells), value, mask))
        for cells, value, mask in ready:
            self.memory.store(cells, value, mask)

    def _kept(self, cells: Cells) -> Cells:
        """Return cells whose subscripts are not read again; a load may be in one."""
        if not any("[" in text for text in cells.subscripts):
            return cells
        values = [Value(INDEX, (text,)) for text in cells.subscripts]
        texts = tuple(self.ex.declared(value, "at").text for value in values)
        return replace(cells, subscripts=texts)

    def _copies(self, stmt: Store, scope: Scope) -> list[Env]:
        """Return the copies that store: a register belongs to all copies together."""
        once = stmt.buffer.space is MemSpace.REGISTER
        return scope.envs[:1] if once else scope.envs

    def _gate(self, stmt: Store, env: Env) -> Value | None:
        return None if stmt.gate is None else self.ex.value(stmt.gate, env)

    def _guard(self, stmt: Stmt) -> Value | None:
        """Return the condition that picks one thread or group for a store of all."""
        guard = None
        for axis in self.plan.guards.get(id(stmt), ()):
            thread = Value(INDEX, (self.session.bound[axis.id],))
            first = self.ex.operate(BinaryOp.EQ, thread, Value(INDEX, ("0",)))
            guard = self.ex.both(guard, first)
        return guard

    def _stage(self, stmt: Stage, scope: Scope) -> None:
        store = Store(stmt.buffer, stmt.axes, stmt.value)
        self.plan.guards[id(store)] = self.plan.guards.get(id(stmt), [])
        self._for(For(stmt.axes, (store,)), scope)
        del self.plan.guards[id(store)]

    # control flow

    def _for(self, stmt: For, scope: Scope) -> None:
        envs = scope.envs
        with ExitStack() as stack:
            for axis in stmt.axes:
                if axis.role in {AxisRole.WEAK, AxisRole.LOOP}:
                    envs = self._loop(axis, envs, stack)
            copies = [axis for axis in stmt.axes if axis.role is AxisRole.UPCAST]
            envs = [copy for env in envs for copy in spread(env, copies)]
            for axis in stmt.axes:
                if axis.role is AxisRole.VECTOR:
                    texts = tuple(str(lane) for lane in range(self.plan.lanes))
                    lanes = Lanes(axis.id, texts)
                    envs = [replace(env, vector=lanes) for env in envs]
            self.block(stmt.body, scope.with_envs(envs))

    def _loop(self, axis: Axis, envs: list[Env], stack: ExitStack) -> list[Env]:
        if const_int(fold(axis.size)) == 1:
            return [env.with_axis(axis.id, "0") for env in envs]
        size = self.ex.scalar(axis.size, self.sums.hoist([axis.size], envs[:1])[0])
        name = self.session.names.fresh(axis.name)
        header = self.dialect.for_header(name, size)
        stack.enter_context(self.writer.block(header))
        return [env.with_axis(axis.id, name) for env in envs]

    # the rest

    def _barrier(self, _stmt: Barrier, _scope: Scope) -> None:
        self.writer.line(self.dialect.barrier)

    def _prefetch(self, stmt: Prefetch, scope: Scope) -> None:
        if not self.dialect.prefetch:
            return
        for env in self.sums.hoist(stmt.index, scope.envs):
            self.memory.prefetch(stmt, env)

    def _call(self, stmt: OpaqueCall, scope: Scope) -> None:
        for env in self.sums.hoist(stmt.args, scope.envs):
            args = ", ".join(self.ex.scalar(arg, env) for arg in stmt.args)
            self.writer.line(self.dialect.call(f"{stmt.fn}({args})"))


def sources(stmt: Store) -> tuple[Expr, ...]:
    """Return what a store evaluates, its gate apart."""
    return (*stmt.index, stmt.value)
