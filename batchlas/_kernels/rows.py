"""A matrix by rows in the registers of a thread, each element under its own name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

from batchlas._kernels.ir import Const, DType, Expr

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchlas._kernels.build import KernelBuilder, Ref

Place: TypeAlias = "Expr | int"

STEP = 4
"""Elements of a row that are handled together: sums that are in flight."""


class Rows(Protocol):
    """Where a matrix's elements are kept, and how loops over them are written."""

    k: KernelBuilder
    dtype: DType

    def __getitem__(self, index: tuple[Place, Place], /) -> Expr:
        """Return an element."""

    def __setitem__(self, index: tuple[Place, Place], value: Expr, /) -> None:
        """Set an element."""

    def loop(self, start: Place, stop: Place, name: str = "i", /) -> Iterator[Place]:
        """Yield the steps of a loop."""

    def steps(self, size: Place) -> Iterator[list[Place]]:
        """Yield 0 ... size-1, `STEP` numbers at a time, and then what is left."""


class Cells(Protocol):
    """Where a vector's elements are kept."""

    def __getitem__(self, i: Place, /) -> Expr:
        """Return an element."""

    def __setitem__(self, i: Place, value: Expr, /) -> None:
        """Set an element."""


class NamedRows:
    """A square matrix; its loops are written out."""

    def __init__(self, k: KernelBuilder, name: str, n: int, dtype: DType) -> None:
        self.k, self.n, self.dtype = k, n, dtype
        self._cells: dict[tuple[int, ...], Ref] = {
            (i, j): k.register(f"{name}{i}_{j}", dtype)
            for i in range(n)
            for j in range(n)
        }

    def __getitem__(self, index: tuple[Place, Place]) -> Expr:
        return self._cells[_numbers(*index)][()]

    def __setitem__(self, index: tuple[Place, Place], value: Expr) -> None:
        self._cells[_numbers(*index)].set(value)

    def loop(self, start: Place, stop: Place, _name: str = "i", /) -> Iterator[Place]:
        """Yield each number."""
        yield from range(*_numbers(start, stop))

    def steps(self, size: Place) -> Iterator[list[Place]]:
        """Yield 0 ... size-1, `STEP` numbers at a time."""
        (stop,) = _numbers(size)
        for start in range(0, stop, STEP):
            yield list(range(start, min(start + STEP, stop)))

    def each(self, function: Callable[[Expr], Expr | None]) -> None:
        """Call a function on every element, and store what it returns if not None."""
        for cell in self._cells.values():
            value = function(self.k.let(cell[()], "x"))
            if value is not None:
                cell.set(value)

    def set_identity(self) -> None:
        """Set the matrix to the identity."""
        for (i, j), cell in self._cells.items():
            cell.set(Const(int(i == j), self.dtype))


class NamedVector:
    """A vector whose elements have names."""

    def __init__(self, k: KernelBuilder, name: str, n: int, dtype: DType) -> None:
        self._cells = [k.register(f"{name}{p}", dtype) for p in range(n)]

    def __getitem__(self, i: Place) -> Expr:
        return self._cells[_numbers(i)[0]][()]

    def __setitem__(self, i: Place, value: Expr) -> None:
        self._cells[_numbers(i)[0]].set(value)


def _numbers(*places: Place) -> tuple[int, ...]:
    """Return places of elements that have names, which are known when they are used."""
    numbers = tuple(place for place in places if isinstance(place, int))
    if len(numbers) != len(places):
        msg = f"{places} of elements that have names"
        raise TypeError(msg)
    return numbers
