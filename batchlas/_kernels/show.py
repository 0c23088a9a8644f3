"""Kernels as text for people: one line a statement, loops indented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batchlas._kernels.ir import (
    AddressOf,
    Axis,
    Barrier,
    Binary,
    BinaryOp,
    Buffer,
    Cast,
    Const,
    Expr,
    Fma,
    For,
    If,
    Kernel,
    Let,
    Load,
    OpaqueCall,
    OpaqueValue,
    ParallelStore,
    Prefetch,
    Reduce,
    Repeat,
    ScalarArg,
    Select,
    Stage,
    Stmt,
    Store,
    Temp,
    Unary,
)
from batchlas._kernels.names import letter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SIGNS = {
    BinaryOp.ADD: "+",
    BinaryOp.SUB: "-",
    BinaryOp.MUL: "*",
    BinaryOp.DIV: "/",
    BinaryOp.FLOORDIV: "//",
    BinaryOp.MOD: "%",
    BinaryOp.LT: "<",
    BinaryOp.LE: "<=",
    BinaryOp.GT: ">",
    BinaryOp.GE: ">=",
    BinaryOp.EQ: "==",
    BinaryOp.NE: "!=",
    BinaryOp.AND: "&",
    BinaryOp.OR: "|",
}


def show(kernel: Kernel) -> str:
    """Return the kernel as text; axes carry their size and the letter of their role.

    Not a language: nothing reads it back.
    """
    params = ", ".join(_param(param) for param in kernel.params)
    lines = [f"kernel {kernel.info.name}({params})", *_block(kernel.body)]
    return "\n".join(lines) + "\n"


def _param(param: Buffer | ScalarArg) -> str:
    if isinstance(param, ScalarArg):
        return f"{param.name}: {param.dtype.value}"
    sizes = ", ".join(show_expr(size) for size in param.shape)
    return f"{param.name}: {param.dtype.value}[{sizes}]"


def _block(body: Iterable[Stmt]) -> list[str]:
    return ["  " + line for stmt in body for line in _lines(stmt)]


def _lines(stmt: Stmt) -> list[str]:
    if isinstance(stmt, For):
        axes = ", ".join(_header(axis) for axis in stmt.axes)
        return [f"for {axes}", *_block(stmt.body)]
    if isinstance(stmt, Repeat):
        kind = "repeat uniform" if stmt.uniform else "repeat"
        return [kind, *_block(stmt.body), f"while {show_expr(stmt.cond)}"]
    if isinstance(stmt, If):
        return [f"if {show_expr(stmt.cond)}", *_block(stmt.body)]
    if isinstance(stmt, ParallelStore):
        return ["together", *_block(stmt.stores)]
    return [_line(stmt)]


def _line(stmt: Stmt) -> str:
    if isinstance(stmt, Let):
        return f"let {stmt.temp.name} = {show_expr(stmt.value)}"
    if isinstance(stmt, Store):
        cell = _cell(stmt.buffer, stmt.index)
        gate = "" if stmt.gate is None else f"  if {show_expr(stmt.gate)}"
        return f"{cell} = {show_expr(stmt.value)}{gate}"
    if isinstance(stmt, Stage):
        axes = ", ".join(_header(axis) for axis in stmt.axes)
        cell = _cell(stmt.buffer, stmt.axes)
        return f"stage {cell} = {show_expr(stmt.value)} for {axes}"
    if isinstance(stmt, OpaqueCall):
        return f"call {stmt.fn}({_list(stmt.args)})"
    if isinstance(stmt, Prefetch):
        return f"prefetch {stmt.count} from {_cell(stmt.buffer, stmt.index)}"
    return "barrier" if isinstance(stmt, Barrier) else type(stmt).__name__


def _header(axis: Axis) -> str:
    return f"{_axis(axis)}:{show_expr(axis.size)}{letter(axis.role)}"


def _axis(axis: Axis) -> str:
    return f"{axis.name}{axis.id}"


def _cell(buffer: Buffer, index: Iterable[Expr]) -> str:
    return f"{buffer.name}[{_list(index)}]"


def _list(exprs: Iterable[Expr]) -> str:
    return ", ".join(show_expr(expr) for expr in exprs)


def show_expr(expr: Expr) -> str:
    """Return a value as text."""
    return _SHOW[type(expr)](expr)


def _binary(expr: Binary) -> str:
    a, b = show_expr(expr.a), show_expr(expr.b)
    if expr.op in _SIGNS:
        return f"({a} {_SIGNS[expr.op]} {b})"
    return f"{expr.op.value}({a}, {b})"


def _load(expr: Load) -> str:
    gate = "" if expr.gate is None else f" if {show_expr(expr.gate)}"
    cell = _cell(expr.buffer, expr.index)
    return f"({cell}{gate})" if gate else cell


def _reduce(expr: Reduce) -> str:
    axes = ", ".join(_header(axis) for axis in expr.axes)
    return f"{expr.op.value}({axes}; {show_expr(expr.value)})"


_SHOW: dict[type, Callable[[Any], str]] = {
    Const: lambda e: repr(e.value),
    ScalarArg: lambda e: e.name,
    Axis: _axis,
    Temp: lambda e: e.name,
    Unary: lambda e: f"{e.op.value}({show_expr(e.x)})",
    Binary: _binary,
    Fma: lambda e: f"fma({_list((e.a, e.b, e.c))})",
    Select: lambda e: f"select({_list((e.cond, e.a, e.b))})",
    Cast: lambda e: f"{e.dtype.value}({show_expr(e.x)})",
    Load: _load,
    Reduce: _reduce,
    OpaqueValue: lambda e: f"{e.fn}({_list(e.args)})",
    AddressOf: lambda e: f"&{_cell(e.buffer, e.index)}",
}
