"""A schedule without a table: the few splits that rarely hurt.

Tuned tables decide speed; this is what runs before a device has been tuned.  In order:
a register tile where a sum of products has two free axes, row loops in lanes, short
sums unrolled, and the batch axis over vector lanes or threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.ir import AxisRole, Binary, BinaryOp, Reduce
from batchlas._kernels.options import Ok, Split, Target
from batchlas._kernels.walk import buffers, const_int, fold

if TYPE_CHECKING:
    from batchlas._kernels.ir import Axis
    from batchlas._kernels.schedule import Scheduler

COPIES_MAX = 64  # of a statement: beyond it registers spill and compilers crawl
UNROLL_MAX = 16  # a sum this short is unrolled whole
VECTOR_BYTES = 64  # one AVX-512 register


def hand_coded(k: Scheduler) -> Scheduler:
    """Return a copy of the scheduler with the splits of the heuristic applied."""
    new = k.copy()
    if not _tile(new):
        _rows(new)
    _sums(new)
    _batch(new)
    return new


def _try(k: Scheduler, axis: Axis, amounts: tuple[int, ...], target: Target) -> bool:
    """Apply the first amount that fits, by the axis and not by an old position."""
    for amount in amounts:
        copies = k.upcast_size()
        lanes = target is Target.UPCAST
        if lanes and (not isinstance(copies, int) or copies * amount > COPIES_MAX):
            continue
        listed = [a.id for a in k.rngs()]
        if axis.id not in listed:
            return False
        opt = Split(listed.index(axis.id), amount, target)
        if isinstance(k.apply_opt(opt), Ok):
            return True
    return False


def _tile(k: Scheduler) -> bool:
    """Give the last two free axes of one sum of products 4 by 4 (or 2 by 2) lanes."""
    sums = k.reduceops()
    if len(sums) != 1 or not _is_product(sums[0]):
        return False
    axes = [k.rngs()[position] for position in k.upcastable_dims()]
    if len(axes) < 3:
        return False
    done = [_try(k, axis, (4, 2), Target.UPCAST) for axis in axes[-2:]]
    return any(done)


def _is_product(node: Reduce) -> bool:
    return isinstance(node.value, Binary) and node.value.op is BinaryOp.MUL


def _rows(k: Scheduler) -> None:
    for position in k.upcastable_dims():
        axis = k.rngs()[position]
        if axis.role is AxisRole.WEAK:
            _try(k, axis, (4, 2), Target.UPCAST)
            return


def _sums(k: Scheduler) -> None:
    for axis in [k.rngs()[position] for position in k.upcastable_dims(reduce=True)]:
        size = const_int(fold(axis.size)) or 0
        whole = (size,) if size <= UNROLL_MAX else ()
        _try(k, axis, (*whole, 4, 2), Target.UPCAST)


def _batch(k: Scheduler) -> None:
    groups = k.axes_of((AxisRole.GLOBAL,), reduce=False)
    if not groups:
        return
    axis = k.rngs()[groups[0]]
    itemsize = max((b.dtype.itemsize for b in buffers(k.ast())), default=8)
    most = VECTOR_BYTES // itemsize
    widths = sorted((w for w in k.ren().vector_widths if w <= most), reverse=True)
    if not _try(k, axis, tuple(widths), Target.VECTOR):
        _try(k, axis, (64, 32, 16, 8), Target.LOCAL)
