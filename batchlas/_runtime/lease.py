"""Leases of scratch memory, and the layouts that say what a kernel needs.

A driver states its scratch once, as a layout: a function of ``allocate`` that asks for
its arrays one by one.

>>> def layout(allocate):
...     return allocate((8, 4), "float64"), allocate((8,), "int32")
>>> measured_bytes(layout)
512

The same function is run in measuring mode to know the size and then again to hand the
arrays out, so that the two cannot disagree:

>>> with backend.workspace(a).lease(layout) as (panel, pivots):  # doctest: +SKIP
...     launch(panel, pivots)

The contents of the arrays are whatever the last borrower left in them.
"""

from __future__ import annotations

import math
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, NoReturn, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    Shape = tuple[int, ...]
    Allocate = Callable[[Shape, Any], Any]
    # Returns the arrays of a driver, which alone knows what they are.
    Layout = Callable[[Allocate], Any]

T = TypeVar("T")

ALIGNMENT = 256
"""Bytes; every array of a layout starts at a multiple of it."""


class Memory(Protocol):
    """Where the blocks of an arena come from."""

    is_in_order: bool
    """Whether work on the queue runs in the order in which it was submitted."""

    def allocate(self, nbytes: int) -> Any:
        """Return a block whose first byte is aligned."""

    def array(self, block: Any, start: int, shape: Shape, dtype: np.dtype[Any]) -> Any:
        """Return an array on the block's bytes from `start` on."""

    def wait(self) -> None:
        """Wait for all work on the queue."""


class Planned(NamedTuple):
    """What an array of a layout will be; measuring mode hands these out."""

    shape: Shape
    dtype: np.dtype[Any]


class _Tape:
    """Lays arrays out one after the other, as a layout asks for them."""

    def __init__(
        self,
        make: Callable[[int, Shape, np.dtype[Any]], Any],
        limit: float = math.inf,
    ) -> None:
        self._make = make
        self._limit = limit
        self.nbytes = 0

    def __call__(self, shape: Shape, dtype: Any) -> Any:
        start, kind = self.nbytes, np.dtype(dtype)
        self.nbytes += -(-math.prod(shape) * kind.itemsize // ALIGNMENT) * ALIGNMENT
        if self.nbytes > self._limit:
            self._disagree()
        return self._make(start, shape, kind)

    def check_all_used(self) -> None:
        """Raise if the layout asked for less than when it was measured."""
        if self.nbytes != self._limit:
            self._disagree()

    def _disagree(self) -> NoReturn:
        message = f"a layout measured {self._limit} bytes, then took {self.nbytes}"
        raise RuntimeError(message)


def measured_bytes(layout: Callable[[Allocate], object]) -> int:
    """Return how many bytes a layout takes, without any memory."""
    tape = _Tape(_plan)
    layout(tape)
    return tape.nbytes


def _plan(_start: int, shape: Shape, dtype: np.dtype[Any]) -> Planned:
    return Planned(shape, dtype)


class Loan:
    """A part of a block that is lent out."""

    __slots__ = ("block", "index", "is_returned", "nbytes", "start", "what")

    def __init__(
        self, block: Any, index: int, start: int, nbytes: int, what: str
    ) -> None:
        self.block, self.index, self.start, self.nbytes = block, index, start, nbytes
        self.what = what
        self.is_returned = False

    def __str__(self) -> str:
        return f"{self.what} ({self.nbytes} bytes)"


class Workspace(Protocol):
    """What scratch is borrowed from: an arena, or CuPy's pool."""

    @property
    def memory(self) -> Memory:
        """Where the bytes are."""

    @property
    def live(self) -> tuple[str, ...]:
        """Names and sizes of the leases that are out."""

    def lease(self, layout: Callable[[Allocate], T]) -> Lease[T]:
        """Return a lease of a layout's arrays, to be entered by ``with``."""

    def trim(self) -> None:
        """Free what nobody borrows."""

    def borrow(self, nbytes: int, what: str) -> Loan:
        """Lend bytes."""

    def give_back(self, loan: Loan) -> None:
        """Take bytes back; it never raises, since destructors call it."""


class Lease(Generic[T]):
    """Scratch for a ``with`` block; entering it borrows, leaving it gives back.

    Between the two, `arrays` is what the layout returned. A lease does not keep its
    workspace, only the memory of its loan.
    """

    __slots__ = ("_arrays", "_layout", "_loan", "_workspace")

    def __init__(self, workspace: Workspace, layout: Callable[[Allocate], T]) -> None:
        self._workspace = weakref.ref(workspace)
        self._layout = layout
        self._loan: Loan | None = None
        self._arrays: T | None = None

    def __enter__(self) -> T:
        workspace = self._workspace()
        if workspace is None or self._loan is not None:
            message = "a lease needs its workspace, and is entered once at a time"
            raise RuntimeError(message)
        stated = measured_bytes(self._layout)
        loan = self._loan = workspace.borrow(stated, _name_of(self._layout))
        array = workspace.memory.array

        def place(start: int, shape: Shape, dtype: np.dtype[Any]) -> Any:
            return array(loan.block, loan.start + start, shape, dtype)

        try:
            tape = _Tape(place, stated)
            self._arrays = self._layout(tape)
            tape.check_all_used()
        except BaseException:
            self.release()
            raise
        return self._arrays

    def __exit__(self, *_exc: object) -> None:
        self.release()

    def __del__(self) -> None:
        self.release()

    @property
    def arrays(self) -> T:
        """What the layout returned.

        Raises
        ------
        RuntimeError
            Before the lease is entered and after it is released.
        """
        if self._loan is None or self._arrays is None:
            message = "this lease holds no memory: it is not entered, or released"
            raise RuntimeError(message)
        return self._arrays

    def release(self) -> None:
        """Give the bytes back; a second time nothing happens. It never raises."""
        loan, self._loan, self._arrays = self._loan, None, None
        workspace = self._workspace()
        if loan is not None and workspace is not None:
            workspace.give_back(loan)


def _name_of(layout: Callable[..., object]) -> str:
    """Return a layout's name for reports; a partial has its function's."""
    function = layout.func if isinstance(layout, partial) else layout
    return str(getattr(function, "__qualname__", function))
