"""Conditions and loops: real branches where all agree, masks where they do not."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from batchlas._kernels.ir import INDEX, Binary, BinaryOp, DType, If, Repeat
from batchlas._kernels.render.values import Scope, Value, bare

if TYPE_CHECKING:
    from batchlas._kernels.render.lower import Lowering
    from batchlas._kernels.render.values import Env

_ONE = Value(INDEX, ("1",))


class Control:
    """Writes If and Repeat for a lowering."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self.session = lowering.session
        self.plan = lowering.plan
        self.ex = lowering.ex
        self.dialect = lowering.dialect
        self.writer = lowering.writer

    def _value(self, cond: Binary | Repeat | If, env: Env) -> Value:
        expr = cond if isinstance(cond, Binary) else cond.cond
        return self.ex.value(expr, self.lowering.sums.hoist([expr], [env])[0])

    # If

    def guard(self, stmt: If, scope: Scope) -> None:
        """Write a guarded block: a branch, or a mask where lanes or threads differ."""
        cond = stmt.cond
        varies = self.plan.varies(cond)
        if varies and isinstance(cond, Binary) and cond.op is BinaryOp.AND:
            self.guard(If(cond.a, (If(cond.b, stmt.body),)), scope)
            return
        if varies and self.plan.is_tail(stmt):
            self._tail(stmt, scope)
            return
        waits = self.plan.meets(stmt)
        value = self._value(stmt, scope.first)
        if not varies and (not waits or self.plan.is_uniform(cond)):
            with self.session.conditional(value.text):
                self.lowering.block(stmt.body, scope)
            return
        mask = self.ex.named(value, "mask")
        skips = varies and not waits
        some = self.dialect.any_lane(mask.text) if skips else None
        with self.session.conditional(some):
            self.lowering.block(stmt.body, self._masked(scope, mask))

    def _masked(self, scope: Scope, mask: Value) -> Scope:
        """Return the scope in which nothing outside the mask is read or stored."""
        reads = self.ex.both(scope.first.may_read, mask)
        envs = [replace(env, may_read=reads) for env in scope.envs]
        return Scope(envs, self.ex.both(scope.mask, mask))

    def _tail(self, stmt: If, scope: Scope) -> None:
        """Write a block in which lanes past the end do what the last one does.

        They read and store the same cells with the same values, so nothing is masked.
        """
        vector, cond = scope.first.vector, stmt.cond
        if vector is None or not isinstance(cond, Binary):
            raise TypeError(stmt)
        start = Value(INDEX, (self.ex.scalar(cond.a, scope.first.in_lane(0)),))
        end = Value(INDEX, (self.ex.scalar(cond.b, scope.first),))
        inside = self.ex.operate(BinaryOp.LT, start, end)
        waits = self.plan.meets(stmt)
        if waits:
            inside = self.ex.declared(inside, "inside")
        with nullcontext() if waits else self.session.conditional(inside.text):
            left = self.ex.operate(BinaryOp.SUB, end, start)
            last = self.ex.declared(self.ex.operate(BinaryOp.SUB, left, _ONE), "last")
            first = () if waits else vector.texts[:1]  # there is one item at least
            rest = (self._at_most(text, last) for text in vector.texts[len(first) :])
            lanes = replace(vector, texts=(*first, *rest))
            inner = scope.with_envs([replace(e, vector=lanes) for e in scope.envs])
            if waits:
                inner = self._masked(inner, inside)
            self.lowering.block(stmt.body, inner)

    def _at_most(self, text: str, last: Value) -> str:
        nearer = self.ex.extreme(BinaryOp.MIN, last, Value(INDEX, (text,)))
        return self.ex.declared(nearer, "lane").text

    # Repeat

    def repeat(self, stmt: Repeat, scope: Scope) -> None:
        """Write a do-while loop.

        Where lanes or threads leave at different times, the loop runs until none is
        left; those that are done are masked.
        """
        lanes = self.plan.lanes if self.plan.varies(stmt.cond) else 1
        if lanes == 1 and not self.plan.exits_together(stmt):
            go = self._variable("go", "1")
            with self.writer.block(self.dialect.while_header(go)):
                cond = self._round(stmt, scope)
                self._assign(go, self.dialect.kept_bool(cond.text))
            return
        self._masked_repeat(stmt, scope, lanes)

    def _masked_repeat(self, stmt: Repeat, scope: Scope, lanes: int) -> None:
        together = self.plan.exits_together(stmt)
        name, live = self._live(scope.mask, lanes)
        go = self._variable("go", self._some(name, live))
        if together and scope.mask is not None:
            self.dialect.any_thread(self.writer, go)
        with self.writer.block(self.dialect.while_header(go)):
            cond = self._round(stmt, scope.under(live))
            still = self.ex.operate(BinaryOp.AND, live, cond)
            self._assign(name, self._kept(still))
            self._assign(go, self._some(name, live))
            if together:
                self.dialect.any_thread(self.writer, go)

    def _round(self, stmt: Repeat, scope: Scope) -> Value:
        """Write the body once; return the condition for another round."""
        inner = self.lowering.block(stmt.body, scope)
        return self._value(stmt, inner.first)

    def _live(self, mask: Value | None, lanes: int) -> tuple[str, Value]:
        """Declare the mask of lanes, or the flag of the thread, that go on."""
        if mask is None:
            mask = Value(DType.BOOL, (self.dialect.condition(value=True),))
        start = self.ex.widen(mask, max(lanes, mask.lanes))
        kind = self.dialect.type_of(DType.BOOL, start.lanes)
        name = self._variable("live", self._kept(start), kind)
        text = name if start.lanes > 1 else self.dialect.truth(name)
        return name, Value(DType.BOOL, (text,), start.lanes)

    def _kept(self, cond: Value) -> str:
        return cond.text if cond.lanes > 1 else self.dialect.kept_bool(cond.text)

    def _some(self, name: str, live: Value) -> str:
        return self.dialect.any_lane(name) if live.lanes > 1 else name

    def _variable(self, base: str, text: str, kind: str | None = None) -> str:
        name = self.session.names.fresh(base)
        kind = kind or self.dialect.type_of(DType.BOOL)
        self.writer.line(self.dialect.declaration(kind, name, text))
        return name

    def _assign(self, name: str, text: str) -> None:
        self.writer.line(self.dialect.assignment(name, bare(text)))
