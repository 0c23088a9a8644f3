"""Reading and rewriting IR: children, walks, substitution of axes, free axes.

Every rewrite returns a new node and leaves the given one alone; parts that do not
change are shared.  Memoisation goes by object identity within one call.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar, cast

from batchlas._kernels.ir import (
    Axis,
    Binary,
    BinaryOp,
    Buffer,
    Const,
    Expr,
    For,
    If,
    Node,
    ParallelStore,
    Reduce,
    Repeat,
    ScalarArg,
    Stage,
    Stmt,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    NodeT = TypeVar("NodeT", bound=Node)

CLOSERS = (For, Reduce, Stage)


_FIELD_NAMES: dict[type, tuple[str, ...]] = {}  # fields() is slow, classes are few


def field_names(cls: type) -> tuple[str, ...]:
    """Return the names of a node class's fields."""
    if cls not in _FIELD_NAMES:
        _FIELD_NAMES[cls] = tuple(item.name for item in fields(cls))
    return _FIELD_NAMES[cls]


def children(node: Node) -> Iterator[Node]:
    """Yield the node's sources in the order of its fields."""
    for name in field_names(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def post_order(root: Node | Iterable[Node]) -> list[Node]:
    """Return every node once (by identity), each after its sources."""
    out: list[Node] = []
    seen: set[int] = set()

    def visit(node: Node) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for child in children(node):
                visit(child)
            out.append(node)

    for top in [root] if isinstance(root, Node) else list(root):
        visit(top)
    return out


def statements(block: Iterable[Stmt]) -> Iterator[Stmt]:
    """Yield the statements of a block and of the blocks inside, outer ones first."""
    for stmt in block:
        yield stmt
        if isinstance(stmt, For | Repeat | If):
            yield from statements(stmt.body)
        elif isinstance(stmt, ParallelStore):
            yield from stmt.stores


def map_children(node: NodeT, fn: Callable[[Node], Node]) -> NodeT:
    """Return the node with `fn` applied to each source."""
    changes: dict[str, object] = {}
    for name in field_names(type(node)):
        value = getattr(node, name)
        new: object = value
        if isinstance(value, Node):
            new = fn(value)
        elif isinstance(value, tuple):
            new = _map_tuple(value, fn)
        if new is not value:
            changes[name] = new
    if not changes:
        return node
    return replace(node, **changes)  # type: ignore[type-var]


def _map_tuple(
    items: tuple[object, ...], fn: Callable[[Node], Node]
) -> tuple[object, ...]:
    new = tuple(fn(item) if isinstance(item, Node) else item for item in items)
    same = all(a is b for a, b in zip(new, items, strict=True))
    return items if same else new


def rewrite(root: NodeT, fn: Callable[[Node], Node]) -> NodeT:
    """Return the tree with `fn` applied to every node, sources first."""
    memo: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        known = memo.get(id(node))
        if known is None:
            known = memo[id(node)] = fn(map_children(node, visit))
        return known

    return cast("NodeT", visit(root))


def substitute(root: NodeT, new: Mapping[int, Expr]) -> NodeT:
    """Return the tree with axes replaced by expressions, by the axes' ids.

    Lists of closed axes stay flat: an expression in one is replaced by the axes inside
    it, each once, first the one that kept the identity.  Sizes are rewritten too.
    """
    memo: dict[int, Node] = {}

    def visit(node: Node) -> Node:
        known = memo.get(id(node))
        if known is None:
            known = memo[id(node)] = visit_new(node)
        return known

    def visit_new(node: Node) -> Node:
        if isinstance(node, Axis) and node.id in new:
            return new[node.id]
        if not isinstance(node, CLOSERS):
            return map_children(node, visit)
        axes = flatten_axes(node.axes, tuple(visit(axis) for axis in node.axes))
        if isinstance(node, Reduce):
            return replace(node, value=cast("Expr", visit(node.value)), axes=axes)
        if isinstance(node, For):
            body = tuple(cast("Stmt", visit(stmt)) for stmt in node.body)
            return replace(node, axes=axes, body=body)
        return replace(node, axes=axes, value=cast("Expr", visit(node.value)))

    return cast("NodeT", visit(root))


def flatten_axes(old: tuple[Axis, ...], replaced: tuple[Node, ...]) -> tuple[Axis, ...]:
    """Return the axes inside the replaced ones, each once, outer ones first."""
    out: list[Axis] = []
    for axis, node in zip(old, replaced, strict=True):
        inside = axes_in(node) if not isinstance(node, Axis) else [node]
        inside.sort(key=lambda item: (item.id != axis.id, item.id))
        out.extend(item for item in inside if item.id not in {a.id for a in out})
    return tuple(out)


def axes_in(root: Node | Iterable[Node]) -> list[Axis]:
    """Return the axes that occur under the root, each once, bounds included."""
    found: dict[int, Axis] = {}
    for node in post_order(root):
        if isinstance(node, Axis):
            found.setdefault(node.id, node)
    return list(found.values())


def closed_axes(root: Node | Iterable[Node]) -> list[Axis]:
    """Return the axes that a For, Reduce or Stage closes, each once, in walk order."""
    found: dict[int, Axis] = {}
    for node in post_order(root):
        if isinstance(node, CLOSERS):
            for axis in node.axes:
                found.setdefault(axis.id, axis)
    return list(found.values())


def reductions(root: Node | Iterable[Node]) -> list[Reduce]:
    """Return the distinct reductions in walk order."""
    return list(dict.fromkeys(n for n in post_order(root) if isinstance(n, Reduce)))


def buffers(root: Node | Iterable[Node]) -> list[Buffer]:
    """Return the buffers in walk order, each once."""
    return list(dict.fromkeys(n for n in post_order(root) if isinstance(n, Buffer)))


def is_known_at_launch(expr: Expr) -> bool:
    """Return whether only constants and scalar arguments occur in the expression."""
    return all(isinstance(node, _LAUNCH) for node in post_order(expr))


_LAUNCH = (Const, ScalarArg, Binary)


def is_divisible(expr: Expr, amount: int) -> bool:
    """Return whether a launch expression is surely a multiple of the amount."""
    if isinstance(expr, Const):
        return not isinstance(expr.value, complex) and expr.value % amount == 0
    if isinstance(expr, ScalarArg):
        return expr.multiple_of % amount == 0
    if isinstance(expr, Binary) and expr.op is BinaryOp.MUL:
        return is_divisible(expr.a, amount) or is_divisible(expr.b, amount)
    if isinstance(expr, Binary) and expr.op in {BinaryOp.ADD, BinaryOp.SUB}:
        return is_divisible(expr.a, amount) and is_divisible(expr.b, amount)
    if isinstance(expr, Binary) and expr.op is BinaryOp.FLOORDIV:
        divisor = const_int(expr.b)
        return bool(divisor) and is_divisible(expr.a, amount * (divisor or 1))
    return False


def const_int(expr: Expr) -> int | None:
    """Return the value of an integer literal, else None."""
    if isinstance(expr, Const) and expr.dtype.is_int:
        return int(expr.value.real)
    return None


def launch_value(expr: Expr, scalars: Mapping[str, int]) -> int:
    """Return the value of a launch expression for these scalar arguments."""
    value = const_int(expr)
    if value is not None:
        return value
    if isinstance(expr, ScalarArg):
        return int(scalars[expr.name])
    if isinstance(expr, Binary) and expr.op in _INT_OPS:
        a, b = launch_value(expr.a, scalars), launch_value(expr.b, scalars)
        return _INT_OPS[expr.op](a, b)
    msg = f"{expr!r} is not known at launch"
    raise ValueError(msg)


_INT_OPS: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: lambda a, b: a + b,
    BinaryOp.SUB: lambda a, b: a - b,
    BinaryOp.MUL: lambda a, b: a * b,
    BinaryOp.FLOORDIV: lambda a, b: a // b,
    BinaryOp.MOD: lambda a, b: a % b,
    BinaryOp.MIN: min,
    BinaryOp.MAX: max,
}


def fold(expr: Expr) -> Expr:
    """Return the integer expression with constants folded and units dropped."""
    return rewrite(expr, _fold_node)


def _fold_node(node: Node) -> Node:
    if not isinstance(node, Binary) or not node.dtype.is_int:
        return node
    a, b = const_int(node.a), const_int(node.b)
    if a is not None and b is not None and (b or node.op not in _DIVISIONS):
        return Const(_INT_OPS[node.op](a, b), node.dtype)
    if b is not None and (node.op, b) in _RIGHT_UNITS:
        return node.a
    if a is not None and (node.op, a) in _LEFT_UNITS:
        return node.b
    if node.op is BinaryOp.MUL and 0 in {a, b}:
        return Const(0, node.dtype)
    return node


_DIVISIONS = {BinaryOp.FLOORDIV, BinaryOp.MOD}
_LEFT_UNITS = {(BinaryOp.ADD, 0), (BinaryOp.MUL, 1)}
_RIGHT_UNITS = _LEFT_UNITS | {(BinaryOp.SUB, 0), (BinaryOp.FLOORDIV, 1)}
