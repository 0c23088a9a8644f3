"""Where a tensor core fits: sums of products that an instruction could do.

Found here: the candidates of a kernel and a core.  No renderer prints tensor-core
instructions yet, so `core_conflict` always ends in a refusal; it says how far the
kernel would have come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    Axis,
    Binary,
    BinaryOp,
    Cast,
    Expr,
    For,
    Kernel,
    Reduce,
    ReduceOp,
    Store,
)
from batchlas._kernels.walk import is_divisible, statements

if TYPE_CHECKING:
    from batchlas._kernels.options import TensorCore as TensorCoreOption
    from batchlas._kernels.rules import Facts
    from batchlas._kernels.target import Renderer, TensorCore


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sum over k of a[m, k] * b[k, n], with the axes that would become the tile."""

    reduce: Reduce
    n: Axis
    m: Axis
    k: Axis


def candidates(
    kernel: Kernel, facts: Facts, core: TensorCore, *, pads: bool
) -> list[Candidate]:
    """Return the candidates of a core; with `pads` the sizes need not divide."""
    found: list[Candidate] = []
    for stmt in statements(kernel.body):
        if not isinstance(stmt, For):
            continue
        for store in stmt.body:
            if isinstance(store, Store) and isinstance(store.value, Reduce):
                axes = stmt.axes
                found += _of_sum(store.value, axes, facts, core, pads=pads)
    return found


def _of_sum(
    node: Reduce, axes: tuple[Axis, ...], facts: Facts, core: TensorCore, *, pads: bool
) -> list[Candidate]:
    factors = _factors(node)
    if factors is None or node.dtype is not core.dtype_out:
        return []
    if any(factor.dtype is not core.dtype_in for factor in factors):
        return []
    a, b = (facts.dependence.of(factor) for factor in factors)
    return [
        Candidate(node, n, m, k)
        for k in node.axes
        if k.id in a & b and _fits(k, core.k, pads=pads)
        for n in axes
        if n.id in b - a and _fits(n, core.n, pads=pads)
        for m in axes
        if m.id in a - b and _fits(m, core.m, pads=pads)
    ]


def _factors(node: Reduce) -> tuple[Expr, Expr] | None:
    """Return the factors of a sum of products; a widening cast may stand between."""
    value = _uncast(node.value)
    if node.op is not ReduceOp.ADD or not isinstance(value, Binary):
        return None
    if value.op is not BinaryOp.MUL:
        return None
    return _uncast(value.a), _uncast(value.b)


def _uncast(expr: Expr) -> Expr:
    widens = isinstance(expr, Cast) and expr.x.dtype.is_inexact
    if isinstance(expr, Cast) and widens and expr.x.dtype.itemsize < expr.type.itemsize:
        return expr.x
    return expr


def _fits(axis: Axis, size: int, *, pads: bool) -> bool:
    return pads or is_divisible(axis.size, size)


def core_conflict(
    kernel: Kernel,
    facts: Facts,
    ren: Renderer,
    opt: TensorCoreOption,
    *,
    is_first: bool,
) -> str:
    """Return why no tensor core applies; there always is a reason for now."""
    early = _early_conflict(facts, ren, opt, is_first=is_first)
    if early is not None:
        return early
    cores = (
        ren.tensor_cores if opt.tc_select < 0 else (ren.tensor_cores[opt.tc_select],)
    )
    allowed = [core for core in cores if ren.allow_tf32 or not core.needs_tf32]
    for core in allowed:
        found = candidates(kernel, facts, core, pads=opt.tc_opt == 2)
        if 0 <= opt.axis < len(found):
            return f"{core.name} fits, but no renderer prints tensor cores yet"
    return "no tensor core fits a sum of products of this kernel"


def _early_conflict(
    facts: Facts, ren: Renderer, opt: TensorCoreOption, *, is_first: bool
) -> str | None:
    if not ren.tensor_cores or not ren.has_warp:
        return "the target has no tensor cores"
    if not is_first:
        return "a tensor core must be the first optimisation"
    if facts.read_by_bounds:
        return "a bound reads an axis"
    if facts.opaque:
        return "the kernel has an opaque operation"
    if not -1 <= opt.tc_select < len(ren.tensor_cores):
        return f"the target has {len(ren.tensor_cores)} tensor cores"
    valid = opt.tc_opt in {0, 1, 2} and opt.use_tc in {1, 2}
    return None if valid else "tc_opt is 0, 1 or 2 and use_tc 1 or 2"
