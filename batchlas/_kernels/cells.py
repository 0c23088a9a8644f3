"""Storage of the reference interpreter, with tags that tell who wrote a cell last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from batchlas._kernels.ir import AxisRole, Buffer, DType, MemSpace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

Index = tuple[int, ...]
Scalar: TypeAlias = Any  # a NumPy scalar, or a Python int or bool
CASTS: dict[DType, Callable[[Any], Any]] = {
    DType.BOOL: bool,
    DType.INT32: int,
    DType.INT64: int,
    DType.FLOAT32: np.float32,
    DType.FLOAT64: np.float64,
    DType.COMPLEX64: np.complex64,
    DType.COMPLEX128: np.complex128,
}


class InterpretError(RuntimeError):
    """A kernel does what no target defines: reads outside an array, say."""


class UnwrittenError(InterpretError):
    """A cell of inner storage is read before it is written."""


class DependenceError(InterpretError):
    """Steps of an axis that should be independent, or threads, meet in one cell."""


class Lane:
    """One point of the lane axes of one thread: what its values are."""

    __slots__ = ("active", "at", "mates", "regs", "steps", "temps")

    def __init__(
        self,
        at: dict[int, int],
        temps: dict[int, Any],
        regs: dict[str, Cells],
        steps: dict[int, tuple[int, int]],
    ) -> None:
        self.at = at  # axis id -> step
        self.temps = temps  # Let id -> value
        self.regs = regs  # register buffer -> cells
        self.steps = steps  # tracked axis id -> (which entry of the loop, step)
        self.active = True
        self.mates = [self]  # the lanes of its vector

    def fork(self, axis: int, step: int, entry: int, *, own_registers: bool) -> Lane:
        """Return a lane at one step of a further axis."""
        regs = self.regs
        if own_registers:
            regs = {name: cells.copy() for name, cells in regs.items()}
        steps = {**self.steps, axis: (entry, step)}
        lane = Lane({**self.at, axis: step}, dict(self.temps), regs, steps)
        lane.active = self.active
        return lane


class Cells:
    """The cells of one buffer; unwritten cells of inner buffers cannot be read."""

    __slots__ = ("array", "buffer", "offset", "shape", "strides", "tags", "values")

    def __init__(self, buffer: Buffer, shape: Index) -> None:
        self.buffer = buffer
        self.shape = shape
        self.values: dict[Index, Any] = {}
        self.array: NDArray[Any] | None = None
        self.strides: Index | None = None
        self.offset = 0
        self.tags: dict[Index, tuple[dict[int, tuple[int, int]], int]] = {}

    def copy(self) -> Cells:
        """Return cells of the same contents."""
        new = Cells(self.buffer, self.shape)
        new.values = dict(self.values)
        new.tags = dict(self.tags)
        return new

    def bind(self, array: NDArray[Any], strides: Index | None, offset: int) -> None:
        """Keep the contents in an array: of this shape, or flat if there are strides.

        Raises
        ------
        ValueError
            If the array's shape or dtype is not the buffer's.
        """
        name = self.buffer.name
        if array.dtype != np.dtype(self.buffer.dtype.value):
            msg = f"{name}: {array.dtype} array for {self.buffer.dtype.value}"
            raise ValueError(msg)
        if strides is None and array.shape != self.shape:
            msg = f"{name}: array of shape {array.shape}, the buffer has {self.shape}"
            raise ValueError(msg)
        if strides is not None and array.ndim != 1:
            msg = f"{name}: a buffer with strides takes its flat memory"
            raise ValueError(msg)
        self.array, self.strides, self.offset = array, strides, offset

    def _check(self, index: Index) -> None:
        for i, size in zip(index, self.shape, strict=True):
            if not 0 <= i < size:
                msg = f"{self.buffer.name}{list(index)} is outside {list(self.shape)}"
                raise InterpretError(msg)

    def _place(self, index: Index) -> Scalar:
        if self.strides is None:
            return index
        place = self.offset + sum(
            i * step for i, step in zip(index, self.strides, strict=True)
        )
        if place < 0:
            msg = f"{self.buffer.name}{list(index)} is at element {place}"
            raise InterpretError(msg)
        return place

    def read(self, index: Index) -> Scalar:
        """Return the value of a cell."""
        self._check(index)
        if self.array is not None:
            return CASTS[self.buffer.dtype](self.array[self._place(index)])
        if index not in self.values:
            msg = f"{self.buffer.name}{list(index)} is read before it is written"
            raise UnwrittenError(msg)
        return self.values[index]

    def write(self, index: Index, value: Scalar) -> None:
        """Set the value of a cell."""
        self._check(index)
        if self.array is not None:
            self.array[self._place(index)] = value
        else:
            self.values[index] = value

    def same(self, index: Index, value: Scalar) -> bool:
        """Return whether the cell holds this value already."""
        return bool(self.array is None or self.array[self._place(index)] == value)


class Tracker:
    """Finds steps of independent axes, and threads, that meet in one cell."""

    def __init__(self, names: Mapping[int, tuple[str, AxisRole]]) -> None:
        self._names = names
        self.phase = 0  # barriers passed so far by the group

    def read(self, cells: Cells, index: Index, lane: Lane) -> None:
        """Raise if another step wrote the cell last."""
        axis = self._other(cells, index, lane)
        if axis is not None:
            self._raise(axis, "reads", cells, index)

    def write(self, cells: Cells, index: Index, value: Scalar, lane: Lane) -> None:
        """Raise if another step wrote another value; then tag the cell."""
        register = cells.buffer.space is MemSpace.REGISTER
        if not register and not cells.same(index, value):
            axis = self._other(cells, index, lane)
            if axis is not None:
                self._raise(axis, "overwrites", cells, index)
        cells.tags[index] = (dict(lane.steps), self.phase)

    def _other(self, cells: Cells, index: Index, lane: Lane) -> int | None:
        steps, phase = cells.tags.get(index, ({}, 0))
        register = cells.buffer.space is MemSpace.REGISTER
        for axis, (entry, step) in steps.items():
            mine = lane.steps.get(axis)
            if mine is None or mine[0] != entry or mine[1] == step:
                continue
            role = self._names[axis][1]
            ordered = role is AxisRole.LOCAL and phase != self.phase
            shared = register and role is AxisRole.UPCAST  # one copy for all lanes
            if not ordered and not shared:
                return axis
        return None

    def _raise(self, axis: int, verb: str, cells: Cells, index: Sequence[int]) -> None:
        name, role = self._names[axis]
        cell = f"{cells.buffer.name}{list(index)}"
        msg = f"a step of {role.name} axis {name} {verb} {cell} of another step"
        raise DependenceError(msg)
