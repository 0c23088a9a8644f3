"""How axes and kernels are shown: letters, colours, sizes as text, kernel names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.ir import (
    Axis,
    AxisRole,
    Binary,
    BinaryOp,
    Const,
    Expr,
    Load,
    ScalarArg,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

POSITION = {
    AxisRole.DEVICE: -2,
    AxisRole.WEAK: -1,
    AxisRole.LOOP: -1,
    AxisRole.GLOBAL: 0,
    AxisRole.WARP: 1,
    AxisRole.LOCAL: 2,
    AxisRole.UPCAST: 3,
    AxisRole.VECTOR: 4,
}
_LETTERS = {
    AxisRole.DEVICE: "d",
    AxisRole.WEAK: "L",
    AxisRole.LOOP: "L",
    AxisRole.GLOBAL: "g",
    AxisRole.WARP: "w",
    AxisRole.LOCAL: "l",
    AxisRole.UPCAST: "u",
    AxisRole.VECTOR: "v",
}
_ANSI = {
    AxisRole.DEVICE: 32,
    AxisRole.WEAK: 97,
    AxisRole.LOOP: 97,
    AxisRole.GLOBAL: 34,
    AxisRole.WARP: 96,
    AxisRole.LOCAL: 36,
    AxisRole.UPCAST: 33,
    AxisRole.VECTOR: 35,
}
_SIGNS = {
    BinaryOp.ADD: "+",
    BinaryOp.SUB: "-",
    BinaryOp.MUL: "*",
    BinaryOp.FLOORDIV: "//",
    BinaryOp.MOD: "%",
}


def letter(role: AxisRole) -> str:
    """Return the role's letter.

    Raises
    ------
    ValueError
        If the role is PLACEHOLDER, which only exists while building.
    """
    return _LETTERS[_real(role)]


def colour(role: AxisRole) -> int:
    """Return the role's ANSI colour; a placeholder has none."""
    return _ANSI[_real(role)]


def size_text(size: Expr | int) -> str:
    """Return a size as an expression; axes are shown as i and their id."""
    if isinstance(size, int | Const):
        return str(size.value if isinstance(size, Const) else size)
    if isinstance(size, Axis):
        return f"i{size.id}"
    if isinstance(size, ScalarArg):
        return size.name
    if isinstance(size, Binary):
        sign = _SIGNS.get(size.op, f" {size.op.value} ")
        return f"({size_text(size.a)}{sign}{size_text(size.b)})"
    if isinstance(size, Load):
        return f"{size.buffer.name}[{','.join(size_text(i) for i in size.index)}]"
    return type(size).__name__


def kernel_name(sizes: Iterable[Expr | int], *, reduces: bool) -> str:
    """Return r or E and the sizes of the axes, as an identifier.

    Characters that no identifier may hold are shown as two hex digits.  Names are not
    unique: caches go by `digest`.
    """
    parts = ["r" if reduces else "E", *(size_text(size) for size in sizes)]
    return "".join(
        char if char.isalnum() or char == "_" else f"{ord(char):02X}"
        for char in "_".join(parts)
    )


def coloured(size: Expr | int, role: AxisRole) -> str:
    """Return a size right-aligned in four columns and in its role's colour."""
    return f"\x1b[{colour(role)}m{size_text(size):>4}\x1b[0m"


def _real(role: AxisRole) -> AxisRole:
    if role is AxisRole.PLACEHOLDER:
        msg = "a placeholder axis has no letter and no colour"
        raise ValueError(msg)
    return role
