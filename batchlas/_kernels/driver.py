"""From a fresh kernel to an optimised one: asked for, searched, or by heuristic."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.heuristic import hand_coded
from batchlas._kernels.ir import Kernel, Stage
from batchlas._kernels.options import Refused, format_schedule
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.walk import statements

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.options import Option
    from batchlas._kernels.target import Renderer

    Search = Callable[[Scheduler], Scheduler]


def apply_opts(
    kernel: Kernel,
    ren: Renderer,
    *,
    search: Search | None = None,
    optimize: bool = True,
) -> Kernel:
    """Return the kernel optimised for a target.

    Outermost weak axes become global; then come the optimisations that the kernel asks
    for (`opts_to_apply`, where () asks for none), else those that a search finds, else
    those of the heuristic, unless it is off, the kernel was optimised before or has a
    staged value.  An optimised kernel comes back as it is.

    Raises
    ------
    ValueError
        If an optimisation that the kernel asks for does not apply.
    """
    info = kernel.info
    if info.optimized:
        return kernel
    k = Scheduler(kernel, ren)
    k.convert_loop_to_global()
    if info.opts_to_apply is not None:
        apply_asked(k, info.opts_to_apply)
    elif search is not None:
        k = search(k)
    elif optimize and not info.applied_opts and not _has_stage(kernel):
        k = hand_coded(k)
    return k.get_optimized_ast(None if info.name == "test" else info.name)


def apply_asked(k: Scheduler, opts: tuple[Option, ...]) -> None:
    """Apply a schedule in order; all of it has to apply.

    Raises
    ------
    ValueError
        With the option and the reason of the refusal.
    """
    for opt in opts:
        answer = k.apply_opt(opt)
        if isinstance(answer, Refused):
            done = format_schedule(tuple(k.applied_opts())) or "nothing"
            name = k.ast().info.name
            msg = f"{name}: {opt} does not apply after {done}: {answer.reason}"
            raise ValueError(msg)


def _has_stage(kernel: Kernel) -> bool:
    return any(isinstance(stmt, Stage) for stmt in statements(kernel.body))
