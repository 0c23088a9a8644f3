"""Which shapes are measured, and in which order.

Orders put a point on both sides of the places where library routines and kernels change
their ways (8|9, 16|17, 32|33, 64|65, 128|129); batches grow by four. Orders and batches
come in levels: a run that ends early has measured the coarse grid of every op, dtype
and option before the fine grid of any. Shapes that are too large to be worth their time
or memory are left out: the nearest one answers for them.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas.tune.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from batchlas._runtime.devices import Device
    from batchlas._select import OpSpec
    from batchlas.tune.targets import Target

ORDER_LEVELS = (
    (2, 8, 32, 128),
    (1, 4, 16, 64, 256, 1024),
    (3, 5, 12, 24, 33, 48, 96, 192, 512),
    (6, 9, 17, 65, 129, 384),
)
BATCH_LEVELS = ((1, 64, 4096), (16, 1024, 65536), (4, 256, 16384), (2,))
ORDERS = tuple(sorted(itertools.chain(*ORDER_LEVELS)))
BATCHES = tuple(sorted(itertools.chain(*BATCH_LEVELS)))
DTYPES = ("float64", "float32", "complex128", "complex64")
_DOUBLE = ("float64", "complex128")
MOST_BYTES = 2**25
"""Input of the largest point."""
MOST_WORK = {"potrf": 2**31}
"""n^3 batch of an op's largest point: about a second of a slow routine."""
_MOST_WORK = 2**28
_GPU_BYTES, _GPU_WORK = 4, 16
"""How many times more a GPU gets: less than that leaves much of a large one idle."""
_ALWAYS = 2
"""Batches up to this one are measured at every order (gesvd: only one matrix)."""
# m and n of gesvd in units of the smaller one; tall and wide are different algorithms.
ASPECTS = ((1, 1), (4, 1), (1, 4))


@dataclass(frozen=True, slots=True)
class Cell:
    """One shape to measure on one device.

    Attributes
    ----------
    spec, target
        The op and the device.
    call : NamedTuple
        The table key.
    level : int
        0 for the coarse grid; higher levels are finer.
    """

    spec: OpSpec
    target: Target
    call: Any
    level: int = 0

    @property
    def group(self) -> tuple[object, ...]:
        """What one ranking over sizes and batches belongs to."""
        sizes = {*size_keys(self.call), "batch"}
        values = self.call._asdict().items()
        fixed = tuple(value for key, value in values if key not in sizes)
        return (self.spec.op, self.target.device.key, *fixed, *aspect(self.call))


def size_keys(call: Any) -> list[str]:
    """Return the names of a call's extents."""
    return [name for name in ("m", "n") if name in call._fields]


def size(call: Any) -> int:
    """Return the smaller extent of a call's matrices."""
    return min(int(getattr(call, name)) for name in size_keys(call))


def aspect(call: Any) -> tuple[int, ...]:
    """Return the extents in units of the smaller one."""
    least = size(call)
    return tuple(getattr(call, name) // least for name in size_keys(call))


def resized(call: Any, new: int, batch: int) -> Any:
    """Return a call of the same aspect with another size and batch."""
    extents = {
        name: new * units
        for name, units in zip(size_keys(call), aspect(call), strict=True)
    }
    return call._replace(batch=batch, **extents)


def cells(
    specs: Iterable[OpSpec],
    targets: Iterable[Target],
    dtypes: Sequence[str] = DTYPES,
    orders: Sequence[int] = ORDERS,
    batches: Sequence[int] = BATCHES,
) -> list[Cell]:
    """Return what to measure, the coarse grid of every group before any fine one.

    Within a level groups take turns, so that a run that ends early is fair to all, and
    each group's shapes are shuffled, always in the same way.
    """
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for spec, target, dtype in itertools.product(specs, targets, dtypes):
        if not target.device.has_fp64 and dtype in _DOUBLE:
            continue
        for cell in _grid(spec, target, dtype, (orders, batches)):
            groups.setdefault(cell.group, []).append(cell)
    for group in groups.values():
        random.Random(0).shuffle(group)
    levels = range(max(len(ORDER_LEVELS), len(BATCH_LEVELS)))
    return [
        cell
        for level in levels
        for cell in in_turns(
            [[c for c in group if c.level == level] for group in groups.values()]
        )
    ]


def in_turns(groups: Iterable[Sequence[Cell]]) -> Iterator[Cell]:
    """Yield the first of every group, then the second of every group, and so on."""
    for turn in itertools.zip_longest(*groups):
        yield from (cell for cell in turn if cell is not None)


def _grid(
    spec: OpSpec,
    target: Target,
    dtype: str,
    sizes: tuple[Sequence[int], Sequence[int]],
) -> Iterator[Cell]:
    problem = PROBLEMS[spec.op]
    for option, n, batch in itertools.product(problem.options, *sizes):
        level = max(_level(n, ORDER_LEVELS), _level(batch, BATCH_LEVELS))
        for extents in _extents(spec, n, level):
            call = problem.call(dtype, target.device.kind, option, *extents, batch)
            if is_worth(spec.op, call, target.device) and not is_repeated(call):
                yield Cell(spec, target, call, level)


def is_repeated(call: Any) -> bool:
    """Whether a call is another one's: of square matrices, thin is all."""
    return getattr(call, "vec", "") == "thin" and aspect(call) == (1, 1)


def _extents(spec: OpSpec, n: int, level: int) -> list[tuple[int, ...]]:
    """Return the extents of matrices of size n; not every aspect on the fine grids."""
    if spec.op != "gesvd":
        return [(n,)]
    shapes = ASPECTS if n > 1 and level < 2 else ASPECTS[:1]
    return [(n * rows, n * columns) for rows, columns in shapes]


def _level(value: int, levels: Sequence[Sequence[int]]) -> int:
    """Return the level of an order or batch; what the user asks for is level 0."""
    return next((i for i, level in enumerate(levels) if value in level), 0)


def saturating(n: int, dtype: str) -> int:
    """Return a power of two of matrices that keeps a device busy.

    Their input is a quarter of the largest point's, or less.
    """
    most = MOST_BYTES // 4 // (n * n * np.dtype(dtype).itemsize)
    return min(BATCHES[-1], 1 << max(0, most.bit_length() - 1))


def is_worth(op: str, call: Any, device: Device) -> bool:
    """Whether a call is small enough to be measured on a device."""
    extents = [int(getattr(call, name)) for name in size_keys(call)]
    m, n, batch = extents[0], extents[-1], int(call.batch)
    most_bytes, most_work = MOST_BYTES, MOST_WORK.get(op, _MOST_WORK)
    if device.is_gpu:
        most_bytes, most_work = most_bytes * _GPU_BYTES, most_work * _GPU_WORK
    if m * n * batch * np.dtype(call.dtype).itemsize > most_bytes:
        return False
    work = max(m, n) * m * n * batch
    always = 1 if len(extents) == 2 else _ALWAYS
    return batch <= always or work <= most_work
