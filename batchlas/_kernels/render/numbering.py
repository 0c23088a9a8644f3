"""Which group and thread a copy of the kernel is: axes from hardware numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.ir import DType
from batchlas._kernels.render.plan import size_of
from batchlas._kernels.walk import const_int, fold

if TYPE_CHECKING:
    from batchlas._kernels.ir import Axis
    from batchlas._kernels.render.session import Session
    from batchlas._kernels.render.values import Env


def bind_groups(session: Session, env: Env) -> Env:
    """Bind the axes across work-groups, the last of them the fastest."""
    plan, dialect = session.plan, session.dialect
    if not plan.group_axes:
        return env
    number = dialect.group_id if plan.group_size else dialect.work_item
    kind = dialect.types[DType.INT64]
    rest = session.names.fresh("group")
    text = dialect.convert(number, DType.INT64)
    session.writer.line(dialect.declaration(kind, rest, text))
    for axis in reversed(plan.group_axes):
        name, size = session.names.fresh(axis.name), _size(session, axis, env)
        is_first = axis is plan.group_axes[0]
        value = rest if is_first else f"{rest} % {size}"
        session.writer.line(dialect.constant(kind, name, value))
        if not is_first:
            quotient = dialect.quotient.format(a=rest, b=size)
            session.writer.line(dialect.assignment(rest, quotient))
        session.bound[axis.id] = name
        env = env.with_axis(axis.id, name)
    return env


def _size(session: Session, axis: Axis, env: Env) -> str:
    number = const_int(fold(axis.size))
    if number is not None:
        return str(number)
    return session.expressions.scalar(fold(axis.size), env)


def bind_threads(session: Session, env: Env) -> Env:
    """Bind the axes across the threads of a group, the last of them the fastest."""
    plan, dialect = session.plan, session.dialect
    if not plan.thread_axes:
        return env
    kind = dialect.types[DType.INT64]
    session.thread_id = session.names.fresh("thread")
    text = dialect.convert(dialect.local_id, DType.INT64)
    session.writer.line(dialect.constant(kind, session.thread_id, text))
    stride = 1
    for axis in reversed(plan.thread_axes):
        size = size_of(axis)
        name = session.names.fresh(axis.name)
        value = session.thread_id
        if stride > 1:
            value = dialect.quotient.format(a=value, b=stride)
        if axis is not plan.thread_axes[0]:
            value = f"{value} % {size}"
        session.writer.line(dialect.constant(kind, name, value))
        session.bound[axis.id] = name
        session.thread_strides[axis.id] = stride
        env = env.with_axis(axis.id, name)
        stride *= size
    return env
