"""Scheduler: a kernel and the optimisations applied to it so far.

Applying an optimisation rewrites the scheduler's kernel; kernels themselves are values.
Decided here: which optimisations a kernel and a target allow.  Not decided here: which
of them are worth it (`heuristic`, the tuned tables).  Positions count axes in the order
of `rngs`, and every split moves them.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, TypeAlias

from batchlas._kernels.apply import Request, apply_option
from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    Expr,
    For,
    Kernel,
    Load,
    OpaqueCall,
    OpaqueValue,
    Reduce,
    Stage,
    Store,
)
from batchlas._kernels.names import POSITION, coloured, kernel_name
from batchlas._kernels.options import Ok, Option, Refused, Target
from batchlas._kernels.rules import Facts
from batchlas._kernels.split import (
    THREADS,
    RefusalError,
    check_split,
    inner_axis,
    split_axis,
)
from batchlas._kernels.validate import check_kernel
from batchlas._kernels.walk import (
    axes_in,
    const_int,
    fold,
    is_known_at_launch,
    post_order,
    reductions,
    statements,
    substitute,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from batchlas._kernels.depend import Ids
    from batchlas._kernels.target import Renderer

SInt: TypeAlias = "int | Expr"
_LANE_ROLES = frozenset({AxisRole.GLOBAL, AxisRole.LOCAL, AxisRole.WEAK})


class Scheduler:
    """A kernel, what it is optimised for, and the optimisations so far.

    Parameters
    ----------
    ast : Kernel
        A whole kernel; its own applied optimisations are taken over.
    ren : Renderer
        Limits and abilities of the target.
    """

    __slots__ = ("_ast", "_facts", "_next_id", "_opts", "_ren")

    def __init__(self, ast: Kernel, ren: Renderer) -> None:
        self._ast = check_kernel(ast)
        self._ren = ren
        self._opts = list(ast.info.applied_opts)
        self._facts = Facts(ast)
        ids = [axis.id for axis in axes_in(ast)]
        ids += [axis.id for axis in self._facts.axes]
        self._next_id = max(ids, default=-1) + 1

    def copy(self) -> Scheduler:
        """Return a scheduler that changes independently of this one."""
        new = Scheduler(self._ast, self._ren)
        new._opts = list(self._opts)
        new._next_id = self._next_id
        return new

    def ast(self) -> Kernel:
        """Return the kernel."""
        return self._ast

    def ren(self) -> Renderer:
        """Return the target's facts."""
        return self._ren

    def applied_opts(self) -> list[Option]:
        """Return the optimisations applied, in order."""
        return list(self._opts)

    # axes

    def rngs(self) -> list[Axis]:
        """Return the axes of more than one step.

        Serial and unrolled reductions come last; before that the role decides
        (`names.POSITION`), then the identity.
        """
        listed = [
            axis
            for axis in self._facts.axes
            if axis.role is not AxisRole.DEVICE and const_int(fold(axis.size)) != 1
        ]
        return sorted(listed, key=self._order)

    def _order(self, axis: Axis) -> tuple[bool, int, int]:
        serial = axis.role in {AxisRole.WEAK, AxisRole.UPCAST}
        last = serial and axis.id in self._facts.reduce_ids
        return last, POSITION[axis.role], axis.id

    def shape_len(self) -> int:
        """Return the number of axes."""
        return len(self.rngs())

    def full_shape(self) -> list[SInt]:
        """Return the size of each axis, an int where it is known."""
        return [_simple(axis.size) for axis in self.rngs()]

    def axis_types(self) -> list[AxisRole]:
        """Return the role of each axis."""
        return [axis.role for axis in self.rngs()]

    def reduce_ranges(self) -> list[Axis]:
        """Return the axes that reductions close, each once."""
        return self._pick(self._facts.reduce_ids)

    def axes_of(
        self, types: Collection[AxisRole] = (), *, reduce: bool | None = None
    ) -> list[int]:
        """Return the positions of axes with one of the roles (none means any).

        With `reduce` only those that a reduction closes (True) or does not (False).
        """
        return [
            position
            for position, axis in enumerate(self.rngs())
            if (not types or axis.role in types)
            and reduce in {None, axis.id in self._facts.reduce_ids}
        ]

    def upcast_size(self) -> SInt:
        """Return the product of the sizes of the unrolled axes."""
        sizes = [_simple(a.size) for a in self.rngs() if a.role is AxisRole.UPCAST]
        return prod(sizes)

    def read_by_bounds(self) -> list[Axis]:
        """Return the axes that the size of some axis reads."""
        return self._pick(self._facts.read_by_bounds)

    def opaque(self) -> list[OpaqueCall | OpaqueValue]:
        """Return the opaque operations."""
        return list(self._facts.opaque)

    def read_by_opaque(self) -> list[Axis]:
        """Return the axes that a source of an opaque operation reads."""
        return self._pick(self._facts.read_by_opaque)

    def unread_by_opaque(self) -> list[Axis]:
        """Return the axes that some opaque operation does not read."""
        return self._pick(self._facts.unread_by_opaque)

    def threadless(self) -> list[Axis]:
        """Return the axes that take no threads.

        Those some opaque operation does not read, and the weak axes whose steps share
        storage with the code outside them.
        """
        unread = self._facts.unread_by_opaque
        return [
            axis
            for axis in self._facts.axes
            if axis.id in unread
            or (axis.role is AxisRole.WEAK and self._facts.thread_conflict(axis))
        ]

    def upcastable_dims(self, *, reduce: bool = False) -> list[int]:
        """Return the positions of the axes that could take lanes."""
        return [
            position
            for position, axis in enumerate(self.rngs())
            if axis.role in _LANE_ROLES
            and (const_int(fold(axis.size)) or 0) > 1
            and (axis.id in self._facts.reduce_ids) is reduce
            and self._facts.lane_conflict(axis) is None
        ]

    def group_for_reduces(self) -> int:
        """Return the number of reduce axes that threads of a group share."""
        return len(self.axes_of(THREADS, reduce=True))

    def reduceops(self) -> list[Reduce]:
        """Return the reductions in walk order."""
        return reductions(self._ast)

    def reduceop(self) -> Reduce | None:
        """Return the first reduction, if any."""
        found = self.reduceops()
        return found[0] if found else None

    def bufs(self) -> list[Load | Store]:
        """Return the indexed accesses in the reverse of the walk order."""
        nodes = [n for n in post_order(self._ast) if isinstance(n, Load | Store)]
        return list(dict.fromkeys(reversed(nodes)))

    def colored_shape(self) -> str:
        """Return the sizes, right-aligned in four columns and coloured by role."""
        return " ".join(coloured(_simple(a.size), a.role) for a in self.rngs())

    def _pick(self, ids: Ids) -> list[Axis]:
        return [axis for axis in self._facts.axes if axis.id in ids]

    # rewriting

    def convert_loop_to_global(self) -> None:
        """Spread over work-groups each outermost weak axis that can take threads.

        The axis is closed by a For that stands in the kernel's own body, no reduction
        closes it, its size is known at launch, and every Stage runs inside it.
        """
        if not self._ren.has_local:
            return
        chosen: dict[int, Expr] = {}
        for stmt in self._ast.body:
            if isinstance(stmt, For) and self._holds_stages(stmt):
                for axis in stmt.axes:
                    if self._becomes_global(axis):
                        new = Axis(axis.id, axis.size, AxisRole.GLOBAL, axis.name)
                        chosen[axis.id] = new
        self._replace(substitute(self._ast, chosen))

    def _becomes_global(self, axis: Axis) -> bool:
        return (
            axis.role is AxisRole.WEAK
            and is_known_at_launch(axis.size)
            and self._facts.thread_conflict(axis, to_groups=True) is None
        )

    def _holds_stages(self, loop: For) -> bool:
        every = sum(isinstance(s, Stage) for s in statements(self._ast.body))
        return every == sum(isinstance(s, Stage) for s in statements(loop.body))

    def shift_to(
        self,
        r: Axis,
        amount: int,
        target: Target,
        *,
        top: bool = False,
        new_rng: Axis | None = None,
    ) -> tuple[Axis, Axis]:
        """Split axis r into (r', s): `amount` steps s of the target's role inside r'.

        r becomes ``r'*amount + s``, or ``s*size(r') + r'`` from the top.

        Raises
        ------
        ValueError
            If the amount is not more than 1 or does not divide, the role or the trips
            of r do not allow the split, or r takes no lanes or no threads.
        """
        if r not in self._facts.axes:
            msg = f"{r.name} is no axis of this kernel"
            raise ValueError(msg)
        check_split(self._facts, r, amount, target)
        inner = new_rng
        if inner is None:
            inner = inner_axis(r, amount, target, self._next_id)
        if const_int(inner.size) != amount:
            msg = f"the new axis {inner.name} does not have {amount} steps"
            raise ValueError(msg)
        new, outer = split_axis(self._ast, r, inner, top=top)
        self._replace(new, (inner,))
        return outer, inner

    def apply_opt(self, opt: Option, *, append_opt: bool = True) -> Ok | Refused:
        """Apply an optimisation, or say why not and change nothing.

        Returns
        -------
        Ok or Refused
            The axes made: a split's r' and s, a pad's grown axis, none for a swap.

        Raises
        ------
        ValueError
            If the work-group memory it needs depends on a symbolic size.
        """
        axes = tuple(self.rngs())
        first = not self._opts
        request = Request(self._facts, self._ren, axes, self._next_id, first)
        try:
            new, made = apply_option(request, opt)
        except RefusalError as refusal:
            return Refused(str(refusal))
        self._replace(new, made)
        if append_opt:
            self._opts.append(opt)
        return Ok(made)

    def _replace(self, kernel: Kernel, made: tuple[Axis, ...] = ()) -> None:
        self._ast = check_kernel(kernel)
        self._facts = Facts(kernel)
        self._next_id = max(self._next_id, *(axis.id + 1 for axis in made), 0)

    def get_optimized_ast(self, name_override: str | None = None) -> Kernel:
        """Return the kernel, named, marked optimised, with what was applied."""
        reduces = bool(self.reduceops())
        name = name_override or kernel_name(self.full_shape(), reduces=reduces)
        return self._ast.with_info(
            name=name, applied_opts=tuple(self._opts), optimized=True
        )


def _simple(size: Expr) -> SInt:
    folded = fold(size)
    value = const_int(folded)
    return folded if value is None else value
