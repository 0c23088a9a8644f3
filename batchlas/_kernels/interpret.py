"""The reference interpreter: runs a kernel on NumPy arrays, as its targets would.

Groups and threads run in a chosen order, threads from barrier to barrier; unrolled
lanes share their thread's registers and go in lock step, vector lanes have their own;
a memory store that does not depend on a thread axis runs in one of its threads.  With
`check_independence` every cell remembers who wrote it last.
"""

from __future__ import annotations

import random
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas._kernels.cells import (
    Cells,
    DependenceError,
    InterpretError,
    Lane,
    Tracker,
)
from batchlas._kernels.evaluate import Evaluator
from batchlas._kernels.execute import Executor, run_threads
from batchlas._kernels.ir import AxisRole, Buffer, Kernel, MemSpace, Node
from batchlas._kernels.rules import Facts
from batchlas._kernels.threads import single_thread_axes, thread_axes
from batchlas._kernels.validate import check_kernel
from batchlas._kernels.walk import buffers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

__all__ = ["DependenceError", "InterpretError", "check_independence", "run"]


def run(
    kernel: Kernel,
    arrays: Arrays,
    scalars: Mapping[str, Any] | None = None,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    order: str | int = "forward",
) -> None:
    """Run a kernel; arrays that it writes are changed in place.

    Parameters
    ----------
    kernel : Kernel
        Fresh or scheduled.
    arrays : mapping of str to ndarray
        One array per buffer argument, of the buffer's shape and dtype; the flat memory
        of a buffer that has strides.
    scalars : mapping of str to number, optional
        The scalar arguments.
    functions : mapping of str to callable, optional
        What opaque calls run; a pointer becomes a flat view from its element on.
    order : {"forward", "reverse"} or int
        The order of independent steps, groups and threads; a number is the seed of a
        random one, which also changes threads after every store.

    Raises
    ------
    InterpretError
        If the kernel reads or writes outside an array, reads a cell of inner storage
        before it is written, or its threads part ways at a barrier.
    ValueError
        If an array does not fit its buffer or two written buffers share memory.
    """
    _Launch(kernel, arrays, scalars or {}, functions or {}, order, track=False).go()


def check_independence(
    kernel: Kernel,
    arrays: Arrays,
    scalars: Mapping[str, Any] | None = None,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    orders: Iterable[str | int] = ("forward", "reverse", 1),
) -> None:
    """Raise if steps of an axis that promises independence read each other's cells.

    The kernel runs on copies of the arrays, once per order; it also finds threads of
    a group that meet in a cell without a barrier between.

    Raises
    ------
    DependenceError
        Naming the axis and the cell.
    """
    for order in orders:
        copies = {name: array.copy() for name, array in arrays.items()}
        fns = functions or {}
        _Launch(kernel, copies, scalars or {}, fns, order, track=True).go()


class _Launch:
    """One run of a kernel."""

    def __init__(
        self,
        kernel: Kernel,
        arrays: Arrays,
        scalars: Mapping[str, Any],
        functions: Mapping[str, Callable[..., Any]],
        order: str | int,
        *,
        track: bool,
    ) -> None:
        self.kernel = check_kernel(kernel)
        self.facts = Facts(kernel)
        self.rng = random.Random(order) if isinstance(order, int) else None
        self.order = order
        names = {axis.id: (axis.name, axis.role) for axis in self.facts.axes}
        tracker = Tracker(names) if track else None
        self.values = Evaluator(scalars, functions, self.steps, tracker)
        self.start = Lane({}, {}, {}, {})
        self.inner: list[Buffer] = []
        for buffer in buffers(kernel):
            if buffer.space is MemSpace.GLOBAL:
                self.values.memory[buffer.name] = self.bound(buffer, arrays)
            else:
                self.inner.append(buffer)
        _check_apart(self.facts, arrays)

    def steps(self, size: int) -> Iterable[int]:
        """Return the steps of an independent axis in this run's order."""
        if self.order == "forward":
            return range(size)
        steps = list(range(size - 1, -1, -1))
        if self.rng is not None:
            self.rng.shuffle(steps)
        return steps

    def integers(self, exprs: Iterable[Node]) -> tuple[int, ...]:
        functions = self.values.functions_of(exprs)  # type: ignore[arg-type]
        return tuple(int(fn(self.start)) for fn in functions)

    def bound(self, buffer: Buffer, arrays: Arrays) -> Cells:
        cells = Cells(buffer, self.integers(buffer.shape))
        strides = None if buffer.strides is None else self.integers(buffer.strides)
        (offset,) = self.integers((buffer.offset,))
        if buffer.name not in arrays:
            msg = f"no array for {buffer.name}"
            raise ValueError(msg)
        cells.bind(arrays[buffer.name], strides, offset)
        return cells

    def fresh(self, space: MemSpace) -> dict[str, Cells]:
        """Return unwritten cells for the inner buffers of one kind."""
        return {
            b.name: Cells(b, self.integers(b.shape))
            for b in self.inner
            if b.space is space
        }

    def go(self) -> None:
        axes = thread_axes(self.facts)
        groups = [axis for axis in axes if axis.role is AxisRole.GLOBAL]
        local = [axis for axis in axes if axis.role is not AxisRole.GLOBAL]
        program = Executor(
            self.values, single_thread_axes(self.facts, grouped=False), self.rng
        ).block(self.kernel.body)
        sizes = [self.steps(n) for n in self.integers(axis.size for axis in groups)]
        with np.errstate(all="ignore"):
            for group in product(*sizes):
                self.values.memory.update(self.fresh(MemSpace.LOCAL))
                at = {a.id: i for a, i in zip(groups, group, strict=True)}
                places = [self.steps(n) for n in self.integers(a.size for a in local)]
                threads = []
                for place in product(*places):
                    here = {a.id: i for a, i in zip(local, place, strict=True)}
                    threads.append(program([self.lane(at | here)]))
                run_threads(threads, self.values.tracker, self.rng)

    def lane(self, at: dict[int, int]) -> Lane:
        steps = {axis: (0, step) for axis, step in at.items()}
        return Lane(at, {}, self.fresh(MemSpace.REGISTER), steps)


def _check_apart(facts: Facts, arrays: Arrays) -> None:
    """Raise if two buffers are one array and one of them is written (rule X4)."""
    names = [b.name for b in buffers(facts.kernel) if b.space is MemSpace.GLOBAL]
    for a, b in combinations(names, 2):
        written = {a, b} & facts.written
        if written and np.shares_memory(arrays[a], arrays[b]):
            msg = f"{a} and {b} share memory; an array is one buffer of a kernel"
            raise ValueError(msg)
