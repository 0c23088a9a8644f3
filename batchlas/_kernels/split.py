"""Split: the checks of a split, and the split itself.

Checks come in one order, from the cheap and plain to the storage rules, and each ends
in `RefusalError`, an error that `Scheduler.apply_opt` turns into an answer.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, NoReturn

from batchlas._kernels.barriers import verify_barriers
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    BinaryOp,
    Expr,
    Kernel,
    MemSpace,
    Reduce,
    binary,
    index_const,
)
from batchlas._kernels.names import letter
from batchlas._kernels.options import Target
from batchlas._kernels.rules import Facts, group_conflict, vector_conflict
from batchlas._kernels.threads import has_barriers
from batchlas._kernels.walk import (
    buffers,
    const_int,
    fold,
    is_divisible,
    is_known_at_launch,
    reductions,
    substitute,
)

if TYPE_CHECKING:
    from batchlas._kernels.target import Renderer

ROLE_OF = {
    Target.UPCAST: AxisRole.UPCAST,
    Target.LOCAL: AxisRole.LOCAL,
    Target.VECTOR: AxisRole.VECTOR,
}
SPLIT_TARGETS = {
    Target.UPCAST: frozenset({AxisRole.GLOBAL, AxisRole.LOCAL, AxisRole.WEAK}),
    Target.LOCAL: frozenset({AxisRole.GLOBAL, AxisRole.WEAK}),
    Target.VECTOR: frozenset({AxisRole.GLOBAL, AxisRole.WEAK}),
}
THREADS = frozenset({AxisRole.WARP, AxisRole.LOCAL})
LANES_MAX = 16  # per split: copies of the code
REDUCE_LANES_MAX = 32


class RefusalError(ValueError):
    """An optimisation does not apply, for this reason."""


def refuse(reason: str) -> NoReturn:
    """Raise the refusal."""
    raise RefusalError(reason)


def refuse_if(reason: str | None) -> None:
    """Raise the refusal if there is a reason for one."""
    if reason is not None:
        refuse(reason)


def check_split(facts: Facts, axis: Axis, amount: int, target: Target) -> None:
    """Raise unless the axis may be split so on any target that has the means."""
    if amount <= 1:
        refuse(f"split by {amount}: an amount is 0 or more than 1")
    if axis.role not in SPLIT_TARGETS[target]:
        refuse(f"a {axis.role.name} axis takes no {target.value}")
    if not is_known_at_launch(axis.size):
        refuse(f"the trips of {axis.name} are not known at launch")
    reason = _CONFLICTS[target](facts, axis)
    if reason is not None:
        refuse(f"{axis.name} takes no {target.value}: {reason}")
    if not is_divisible(axis.size, amount):
        refuse(f"{amount} does not divide the size of {axis.name}")


def _thread_conflict(facts: Facts, axis: Axis) -> str | None:
    reason = facts.thread_conflict(axis)
    if reason is None and axis.id in facts.reduce_ids:
        reason = group_conflict(facts, axis)
    return reason


_CONFLICTS = {
    Target.UPCAST: Facts.lane_conflict,
    Target.LOCAL: _thread_conflict,
    Target.VECTOR: vector_conflict,
}


def split_axis(
    kernel: Kernel, axis: Axis, inner: Axis, *, top: bool
) -> tuple[Kernel, Axis]:
    """Return the kernel with the axis split, and what is left of the axis.

    An outer axis of one step leaves the kernel, and its uses become the inner axis.
    Threads are refused where they would not all come to an authored barrier.
    """
    new, outer = _split(kernel, axis, inner, top=top)
    if inner.role is AxisRole.LOCAL and has_barriers(new):
        try:
            verify_barriers(new)
        except ValueError as error:
            refuse(str(error))
    return new, outer


def _split(
    kernel: Kernel, axis: Axis, inner: Axis, *, top: bool
) -> tuple[Kernel, Axis]:
    amount = const_int(inner.size) or 1
    outer = replace(axis, size=fold(binary(BinaryOp.FLOORDIV, axis.size, amount)))
    if const_int(outer.size) == 1:
        return substitute(kernel, {axis.id: inner}), outer
    index = inner * outer.size + outer if top else outer * amount + inner
    return substitute(kernel, {axis.id: fold(index)}), outer


def inner_axis(axis: Axis, amount: int, target: Target, ident: int) -> Axis:
    """Return a new inner axis for a split."""
    role = ROLE_OF[target]
    return Axis(ident, index_const(amount), role, f"{axis.name}{letter(role)}")


def check_limits(
    facts: Facts, ren: Renderer, axis: Axis, amount: int, target: Target
) -> None:
    """Raise if the target machine lacks the means for the split.

    Raises
    ------
    RefusalError
        If a limit is exceeded.
    ValueError
        If the work-group memory depends on a size that is not known here.
    """
    reduces = axis.id in facts.reduce_ids
    lanes_max = REDUCE_LANES_MAX if reduces else LANES_MAX
    if target is Target.UPCAST and amount > lanes_max:
        refuse(f"{amount} lanes, at most {lanes_max}")
    if target is Target.VECTOR:
        _check_vector(facts, ren, amount)
    if target is Target.LOCAL:
        threads = amount * _product(facts, THREADS, "threads of a work-group")
        if threads > ren.max_workgroup:
            refuse(f"{threads} threads in a group, at most {ren.max_workgroup}")
    need = group_bytes(facts, axis, amount, target)
    if need and not ren.has_shared:
        refuse(f"{ren.name} has no work-group memory")
    if need > ren.shared_max:
        refuse(f"{need} bytes of work-group memory, at most {ren.shared_max}")


def _check_vector(facts: Facts, ren: Renderer, amount: int) -> None:
    if amount not in ren.vector_widths:
        refuse(f"{ren.name} has no vectors of {amount} lanes")
    if any(axis.role is AxisRole.VECTOR for axis in facts.axes):
        refuse("another axis already is the lanes of vectors")


def group_bytes(facts: Facts, axis: Axis, amount: int, target: Target) -> int:
    """Return the bytes of work-group memory after a split; 0 if it uses none.

    A grouped reduction keeps one partial result for each thread and each lane; its own
    lanes are summed before.  Buffers that the author placed there come on top.
    """
    reduces = axis.id in facts.reduce_ids
    grouped = [r for r in reductions(facts.kernel) if is_grouped(r)]
    if target is Target.LOCAL and reduces:
        fresh = [r for r in reductions(facts.kernel) if axis.id in _ids(r)]
        grouped += [r for r in fresh if r not in grouped]
    if not grouped:
        return 0
    element = sum(r.dtype.itemsize for r in grouped)
    lanes = [
        a
        for a in facts.axes
        if a.role in {AxisRole.UPCAST, AxisRole.VECTOR} and a.id not in facts.reduce_ids
    ]
    per_lane = 1 if target is Target.UPCAST and reduces else amount
    copies = prod(_known(a.size, "lanes") for a in lanes)
    threads = _product(facts, THREADS, "threads of a work-group")
    return per_lane * copies * threads * element + local_bytes(facts.kernel)


def local_bytes(kernel: Kernel) -> int:
    """Return the bytes of the work-group buffers that the author declared."""
    own = [b for b in buffers(kernel) if b.space is MemSpace.LOCAL]
    return sum(b.dtype.itemsize * prod(const_int(n) or 0 for n in b.shape) for b in own)


def is_grouped(node: Reduce) -> bool:
    """Return whether the threads of a group share the reduction."""
    return any(axis.role in THREADS for axis in node.axes)


def _ids(node: Reduce) -> set[int]:
    return {axis.id for axis in node.axes}


def _product(facts: Facts, roles: frozenset[AxisRole], what: str) -> int:
    return prod(_known(a.size, what) for a in facts.axes if a.role in roles)


def _known(size: Expr, what: str) -> int:
    value = const_int(size)
    if value is None:
        msg = f"the {what} depend on a symbolic size"
        raise ValueError(msg)
    return value
