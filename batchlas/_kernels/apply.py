"""One optimisation applied to one kernel: a new kernel and the axes made, or a refusal.

The functions here are pure; `schedule.Scheduler` keeps the state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from batchlas._kernels.cores import core_conflict
from batchlas._kernels.ir import Axis, AxisRole, Expr, Kernel
from batchlas._kernels.options import Option, PadTo, Split, Swap, Target, TensorCore
from batchlas._kernels.pad import pad_axis, pad_conflict
from batchlas._kernels.split import (
    check_limits,
    check_split,
    inner_axis,
    refuse,
    refuse_if,
    split_axis,
)
from batchlas._kernels.walk import const_int, fold, substitute

if TYPE_CHECKING:
    from batchlas._kernels.rules import Facts
    from batchlas._kernels.target import Renderer


@dataclass(frozen=True, slots=True)
class Request:
    """What an optimisation is applied to."""

    facts: Facts
    ren: Renderer
    axes: tuple[Axis, ...]  # as a scheduler lists them
    next_id: int  # of a new axis
    is_first: bool  # nothing was applied before

    def axis_at(self, position: int) -> Axis:
        """Return the axis at a position, or refuse."""
        if not 0 <= position < len(self.axes):
            refuse(f"axis {position} of {len(self.axes)}")
        return self.axes[position]


Made = tuple[Kernel, tuple[Axis, ...]]


def apply_option(request: Request, opt: Option) -> Made:
    """Return the kernel with the optimisation applied, and the axes that it made.

    Raises
    ------
    RefusalError
        If it does not apply.
    ValueError
        If the work-group memory it needs depends on a symbolic size.
    TypeError
        If it is no optimisation.
    """
    if isinstance(opt, Split):
        return apply_split(request, opt)
    if isinstance(opt, PadTo):
        return apply_pad(request, opt)
    if isinstance(opt, Swap):
        return apply_swap(request, opt)
    if isinstance(opt, TensorCore):
        facts, first = request.facts, request.is_first
        refuse(core_conflict(facts.kernel, facts, request.ren, opt, is_first=first))
    msg = f"{opt!r} is no optimisation"
    raise TypeError(msg)


def apply_split(request: Request, opt: Split) -> Made:
    """Split an axis: ``for r in n`` to ``for r' in n/amount: for s in amount``."""
    axis = request.axis_at(opt.axis)
    if opt.target is Target.LOCAL and not request.ren.has_local:
        refuse(f"{request.ren.name} has no local indices")
    amount = opt.amount
    if amount == 0:
        amount = const_int(fold(axis.size)) or 0
        if amount == 0:
            refuse(f"the whole of {axis.name} has no constant size")
    check_split(request.facts, axis, amount, opt.target)
    check_limits(request.facts, request.ren, axis, amount, opt.target)
    inner = inner_axis(axis, amount, opt.target, request.next_id)
    new, outer = split_axis(request.facts.kernel, axis, inner, top=opt.top)
    return new, (outer, inner)


def apply_pad(request: Request, opt: PadTo) -> Made:
    """Grow an axis to a multiple: ``for i in 6`` to ``for i in 8: if i < 6``."""
    axis = request.axis_at(opt.axis)
    kernel = request.facts.kernel
    refuse_if(pad_conflict(kernel, axis, opt.amount))
    new, grown = pad_axis(kernel, axis, opt.amount)
    return new, (grown,)


def apply_swap(request: Request, opt: Swap) -> Made:
    """Exchange two global axes: groups count ``(j, i)`` instead of ``(i, j)``."""
    a, b = request.axis_at(opt.axis), request.axis_at(opt.with_axis)
    for axis in (a, b):
        if axis.role is not AxisRole.GLOBAL:
            refuse(f"{axis.name} is {axis.role.name}, swaps are of GLOBAL axes")
    new: dict[int, Expr] = {a.id: replace(a, id=b.id), b.id: replace(b, id=a.id)}
    return substitute(request.facts.kernel, new), ()
