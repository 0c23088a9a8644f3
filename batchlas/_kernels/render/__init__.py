"""Renderers: an optimised kernel as OpenCL C, CUDA C or numba-dpex Python.

Decided here: nothing about speed.  `render` prints what the schedule says; equal
kernels give equal texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.digest import digest
from batchlas._kernels.render.cuda import Cuda
from batchlas._kernels.render.dpex import Dpex
from batchlas._kernels.render.lower import Lowering
from batchlas._kernels.render.numbering import bind_groups, bind_threads
from batchlas._kernels.render.opencl import OpenCL
from batchlas._kernels.render.plan import Plan
from batchlas._kernels.render.rendered import (
    Arg,
    ArgKind,
    Passing,
    Rendered,
    RenderError,
)
from batchlas._kernels.render.session import Session
from batchlas._kernels.render.values import Env, Scope

if TYPE_CHECKING:
    from batchlas._kernels.ir import Kernel
    from batchlas._kernels.render.rendered import LocalArray
    from batchlas._kernels.target import Renderer

__all__ = ["Arg", "ArgKind", "Passing", "RenderError", "Rendered", "render"]

DIALECTS = {"opencl": OpenCL, "cuda": Cuda, "dpex": Dpex}


def render(
    kernel: Kernel, target: Renderer, passing: Passing = Passing.POINTER
) -> Rendered:
    """Return an optimised kernel as text of a target.

    Raises
    ------
    RenderError
        If the kernel has something that the target cannot print.
    """
    if target.name not in DIALECTS:
        msg = f"no renderer {target.name!r}; known: {', '.join(DIALECTS)}"
        raise RenderError(msg)
    if passing is Passing.ADDRESS and target.name != "opencl":
        msg = f"{target.name} kernels take arrays by pointer, not by address"
        raise RenderError(msg)
    dialect = DIALECTS[target.name](passing)
    plan = Plan(kernel, uniform_exit=dialect.uniform_exit)
    session = Session(plan, dialect)
    entry = session.names.fresh(kernel.info.name)
    args = session.collect_args(passing)
    params = _parameters(session, args)
    env = bind_threads(session, bind_groups(session, Env({})))
    session.memory.declare_storage()
    Lowering(session).block(kernel.body, Scope([env]))
    extra: list[Arg] = []
    body = session.writer.lines
    if dialect.local_is_argument:
        extra = [_local_arg(array) for array in session.locals]
        params += [arg.name for arg in extra]
    else:
        declared = dialect.local_arrays(session.locals)
        body = [f"    {line}" for line in declared] + body
    return Rendered(
        renderer=target.name,
        source=dialect.source(entry, params, plan.group_size, body),
        entry=entry,
        args=(*args, *extra),
        group_size=plan.group_size,
        groups=plan.groups,
        local_bytes=session.local_bytes,
        dynamic_local_bytes=dialect.dynamic_bytes(session.locals),
        digest=digest(kernel),
    )


def _parameters(session: Session, args: list[Arg]) -> list[str]:
    params = []
    for arg in args:
        name = session.params[arg.name]
        text, lines = session.dialect.parameter(arg, name)
        params.append(text)
        for line in lines:
            session.writer.line(line)
    return params


def _local_arg(array: LocalArray) -> Arg:
    if array.lanes > 1:
        msg = "numba-dpex has no vectors in the memory of a work-group"
        raise RenderError(msg)
    dtype, count = array.dtype, array.count
    return Arg(array.name, ArgKind.LOCAL, dtype, is_written=True, count=count)
