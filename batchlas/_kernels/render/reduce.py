"""Reductions: hoisted before their statement, one accumulator for each copy."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import product
from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    BinaryOp,
    Expr,
    Node,
    Reduce,
    ReduceOp,
)
from batchlas._kernels.pad import identity
from batchlas._kernels.render.expressions import NOWHERE
from batchlas._kernels.render.plan import size_of
from batchlas._kernels.render.values import Value, bare
from batchlas._kernels.walk import children

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from batchlas._kernels.render.session import Session
    from batchlas._kernels.render.values import Env

_FOLDS = {ReduceOp.ADD: BinaryOp.ADD, ReduceOp.MUL: BinaryOp.MUL}


class Reductions:
    """Writes the loops of reductions."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.ex = session.expressions

    def hoist(self, values: Iterable[Expr | None], envs: list[Env]) -> list[Env]:
        """Write the reductions in the values; return where their results are named."""
        for node in outermost(value for value in values if value is not None):
            if id(node) not in envs[0].sums:
                envs = self._reduce(node, envs)
        return envs

    def _reduce(self, node: Reduce, envs: list[Env]) -> list[Env]:
        session = self.session
        loops = [a for a in node.axes if a.role in {AxisRole.WEAK, AxisRole.LOOP}]
        copies = [a for a in node.axes if a.role is AxisRole.UPCAST]
        threads = [a for a in node.axes if a.role is AxisRole.LOCAL]
        names = [session.names.fresh("acc") for _ in envs]
        sizes, inner = self._bind_loops(loops, envs)
        with session.writer.aside(len(sizes)) as lines:
            lanes = self._fold(node, names, [spread(env, copies) for env in inner])
        accs = [
            self._declare(node, name, width)
            for name, width in zip(names, lanes, strict=True)
        ]
        with ExitStack() as stack:
            for header in sizes:
                stack.enter_context(session.writer.block(header))
            session.writer.lines.extend(lines)
        if threads:
            accs = self._across_threads(node, accs, threads)
        return [env.with_sum(node, a) for env, a in zip(envs, accs, strict=True)]

    def _bind_loops(
        self, loops: Sequence[Axis], envs: list[Env]
    ) -> tuple[list[str], list[Env]]:
        headers = []
        for axis in loops:
            name = self.session.names.fresh(axis.name)
            size = self.ex.scalar(axis.size, envs[0])
            headers.append(self.session.dialect.for_header(name, size))
            envs = [env.with_axis(axis.id, name) for env in envs]
        return headers, envs

    def _fold(
        self, node: Reduce, names: list[str], groups: list[list[Env]]
    ) -> list[int]:
        """Write the loop body; return the lanes of each accumulator."""
        flat = self.hoist([node.value], [env for group in groups for env in group])
        rest = iter(flat)
        lanes = []
        for name, group in zip(names, groups, strict=True):
            values = [self.ex.value(node.value, next(rest)) for _ in group]
            width = max(value.lanes for value in values)
            acc = self._accumulator(node, name, width)
            total = acc
            for value in values:
                total = self._combine(node.op, total, value)
            self._assign(acc, total)
            lanes.append(width)
        return lanes

    def _accumulator(self, node: Reduce, name: str, lanes: int) -> Value:
        pair = node.dtype.is_complex
        return Value(node.dtype, (name, f"{name}_im") if pair else (name,), lanes)

    def _combine(self, op: ReduceOp, total: Value, value: Value) -> Value:
        if op is ReduceOp.MAX:
            return self.ex.extreme(BinaryOp.MAX, total, value)
        if value.dtype.is_complex:
            return self.session.complex.binary(_FOLDS[op], total, value)
        return self.ex.operate(_FOLDS[op], total, value)

    def _assign(self, target: Value, value: Value) -> None:
        dialect = self.session.dialect
        if len(value.parts) > 1:
            value = self.ex.named(value)
        wide = self.ex.widen(value, target.lanes)
        for name, part in zip(target.parts, wide.parts, strict=True):
            self.session.writer.line(dialect.assignment(name, bare(part)))

    def _declare(self, node: Reduce, name: str, lanes: int) -> Value:
        dialect = self.session.dialect
        start = self.ex.value(identity(node.op, node.dtype), NOWHERE)
        start = self.ex.widen(start, lanes)
        kind = dialect.type_of(node.dtype.real, lanes)
        acc = self._accumulator(node, name, lanes)
        for target, part in zip(acc.parts, start.parts, strict=True):
            self.session.writer.line(dialect.declaration(kind, target, part))
        return acc

    def _across_threads(
        self, node: Reduce, accs: list[Value], threads: Sequence[Axis]
    ) -> list[Value]:
        """Fold the threads' results through work-group memory; all get the sum.

        The second barrier lets the memory be used again.
        """
        session, dialect = self.session, self.session.dialect
        arrays = [self._shared(node, acc) for acc in accs]
        mine = session.thread_id
        for acc, parts in zip(accs, arrays, strict=True):
            for name, part in zip(parts, acc.parts, strict=True):
                session.writer.line(dialect.assignment(f"{name}[{mine}]", part))
        session.writer.line(dialect.barrier)
        for acc in accs:
            start = self.ex.value(identity(node.op, node.dtype), NOWHERE)
            self._assign(acc, start)
        steps = [(axis, session.thread_strides[axis.id]) for axis in threads]
        first = " - ".join([mine, *(f"{session.bound[a.id]} * {s}" for a, s in steps)])
        with ExitStack() as stack:
            terms = [first]
            for axis, step in steps:
                name = session.names.fresh(axis.name)
                header = dialect.for_header(name, str(size_of(axis)))
                stack.enter_context(session.writer.block(header))
                terms.append(f"{name} * {step}")
            place = " + ".join(terms)
            for acc, names in zip(accs, arrays, strict=True):
                parts = tuple(f"{name}[{place}]" for name in names)
                total = self._combine(node.op, acc, Value(node.dtype, parts, acc.lanes))
                self._assign(acc, total)
        session.writer.line(dialect.barrier)
        return accs

    def _shared(self, node: Reduce, acc: Value) -> tuple[str, ...]:
        real, count = node.dtype.real, self.session.plan.threads
        array = self.session.local_array
        return tuple(array("partial", real, count, acc.lanes) for _ in acc.parts)


def spread(env: Env, axes: Sequence[Axis]) -> list[Env]:
    """Return one environment for each combination of the unrolled axes' values."""
    ranges = [range(size_of(axis)) for axis in axes]
    out = []
    for values in product(*ranges):
        copy = env
        for axis, value in zip(axes, values, strict=True):
            copy = copy.with_axis(axis.id, str(value))
        out.append(copy)
    return out


def outermost(nodes: Iterable[Node]) -> Iterable[Reduce]:
    """Yield the reductions under the nodes that no other reduction encloses."""
    for node in nodes:
        if isinstance(node, Reduce):
            yield node
        else:
            yield from outermost(children(node))
