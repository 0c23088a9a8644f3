"""Plans of the decompositions by reduction: tridiagonal or bidiagonal, then QR.

A decomposition takes four kernels: reduce, accumulate the reflectors, find the values,
rotate the vectors. Decided here, from the shape and the dtype: whether a matrix is
reduced in registers, in shared memory or in a workspace, and how many threads share it.
Nothing here imports CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from batchlas._kernels.cuda.plans import Plan, _defines, element_bytes, power_of_two

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 2
"""Times that the values and the rotations are taken up; one is the rule."""

_SHARED_BYTES = 100 << 10  # of the kernels that can also do with fewer threads
_SEVERAL_BYTES = 48 << 10  # of blocks of several matrices
_ROW_WORDS = 128  # 4-byte registers for the rows that a thread keeps
_LINE_WORDS = 128  # 4-byte registers for a thread's part of a line of vectors
_LINES_WORDS = 64  # for several lines of a thread
_DEEP = 2  # lines of a thread
_BLOCKS = 1024  # small blocks that a large device runs at a time
_BLOCK = 128  # threads of a block that holds several matrices


@dataclass(frozen=True, slots=True)
class Reduction:
    """How one shape is decomposed.

    Attributes
    ----------
    reduce : Plan
    accumulate, rotate : tuple of Plan
        One per array of vectors; none if they are not wanted, and no accumulation
        where the reduction does it.
    values : Plan
    order : int
        How many values there are.
    reduced : int
        Elements of the workspace for the reduced matrix (whole chunks: the next one's
        lines are read 16 bytes at a time) and of its reflectors,
    reflectors : int
        both per matrix.
    room, turns : int
        Rotations and sweeps that one round may write down, per matrix.
    numbers : int
        Real numbers per rotation.
    """

    reduce: Plan
    accumulate: tuple[Plan, ...]
    values: Plan
    rotate: tuple[Plan, ...]
    order: int
    reduced: int
    reflectors: int
    room: int
    turns: int
    numbers: int

    @property
    def rounds(self) -> int:
        """Return how often values and rotations are taken up."""
        return ROUNDS if self.rotate else 1

    def matrix_bytes(self, dtype: str) -> int:
        """Return the workspace that one matrix takes."""
        size = element_bytes(dtype)
        words = 2 * self.order + (self.room * self.numbers if self.rotate else 0)
        integers = 8 * self.turns + 4 * self.order + 16 if self.rotate else 16
        return (self.reduced + self.reflectors + words) * size + integers


def _room(order: int, *, vectors: bool) -> tuple[int, int]:
    """Return the rotations and sweeps that a round may take.

    On average a value takes 1.7 sweeps over half of the order. Without vectors nothing
    is written down, and the bounds only end what would not converge.
    """
    if not vectors:
        return 1 << 40, 30 * order + 8
    return 2 * order * order + 8 * order, 4 * order + 8


def _values(
    order: int, dtype: str, kind: str, batch: int, *, vectors: bool
) -> Plan | None:
    real_bytes = 4 if dtype in ("float32", "complex64") else 8
    room, turns = _room(order, vectors=vectors)
    matrix_bytes = order * (2 * real_bytes + 4) + 2 * real_bytes
    # A chain of rotations waits for itself, and threads of a warp for each other: as
    # few matrices per block as still fill the device at once.
    lanes = min(32, power_of_two(-(-batch // _BLOCKS)))
    while lanes > 1 and lanes * matrix_bytes > _SHARED_BYTES:
        lanes //= 2
    if lanes * matrix_bytes > _SHARED_BYTES:
        return None
    sizes: dict[str, int | str]
    sizes = {"N": order, "ROOM": f"{room}LL", "TURNS": turns, "LANES": lanes}
    flags = {"VECTORS": int(vectors), "DESCENDING": int(kind == "BIDIAGONAL")}
    defines = _real_defines(dtype, kind, **sizes, **flags)
    return Plan(
        ("sweeps.cuh", "values.cu"),
        "values",
        defines,
        lanes,
        lanes,
        lanes * matrix_bytes,
    )


def _real_defines(dtype: str, kind: str, **given: int | str) -> tuple[str, ...]:
    real = "float" if dtype in ("float32", "complex64") else "double"
    return (kind, f"REAL={real}", "PARTS=1", *(f"{k}={v}" for k, v in given.items()))


def _rotate(lines: int, width: int, order: int, dtype: str, **what: int) -> Plan | None:
    room, turns = _room(order, vectors=True)
    sizes: dict[str, int | str]
    sizes = {"HEIGHT": lines, "WIDTH": width, "N": order, "ROOM": f"{room}LL"}
    signed = {
        "TURNS": turns,
        "SIGNED": int(what["NUMBERS"] == 4 and not what["OFFSET"]),
    }
    how = _in_registers(lines, order, dtype) or _in_shared(lines, width, dtype)
    if how is None:
        return None
    source, layout, threads, matrices, shared = how
    defines = _defines(dtype, **sizes, **what, **signed, **layout)
    rows = -(-lines // layout["TILE"])
    files = ("sweeps.cuh", source)
    return Plan(files, "rotate", defines, threads, matrices, shared, rows)


_Layout = tuple[str, dict[str, int], int, int, int]
"""A source, its layout, and threads, matrices and shared memory per block."""


def _in_registers(lines: int, order: int, dtype: str) -> _Layout | None:
    """Return how lines lie in registers, None where four threads are too few."""
    element = element_bytes(dtype)
    real_bytes = 4 if dtype in ("float32", "complex64") else 8
    for segments in (1, 2, 4):
        part = -(-order // (4 * segments)) * 4
        words = part * element // 4
        if words <= _LINE_WORDS:
            break
    else:
        return None
    # A rotation is read from shared memory once for all lines of a thread.
    deep = 1
    while 2 * deep * words <= _LINES_WORDS and 2 * deep <= min(
        _DEEP, power_of_two(lines)
    ):
        deep *= 2
    tile = min(power_of_two(lines), 32 // segments * deep)
    group = tile // deep * segments
    staged = segments * (2 * part * segments * real_bytes + 2 * real_bytes)
    matrix = staged + (tile * (order | 1) + 1) * element
    threads = 128
    while threads > 32 and threads // group * matrix > _SEVERAL_BYTES:
        threads //= 2
    matrices = threads // group
    layout = {"TILE": tile, "DEEP": deep, "SEGMENTS": segments, "PART": part}
    layout["THREADS"] = threads
    return "lines.cu", layout, threads, matrices, matrices * matrix


def _in_shared(lines: int, width: int, dtype: str) -> _Layout | None:
    """Return how lines lie in shared memory, None where one is too long."""
    deep = width + 8  # what a piece of rotations may run beyond the end
    element = element_bytes(dtype)
    block = _block(lines, 128, lambda tile: deep * (tile + 1) * element)
    if block is None:
        return None
    tile, groups, shared = block
    layout = {"TILE": tile, "GROUPS": groups}
    return "rotations.cu", layout, tile * groups, groups, shared


def _block(
    lines: int, most: int, matrix_bytes: Callable[[int], int]
) -> tuple[int, int, int] | None:
    """Return the lines of a block, its matrices, and its shared memory.

    None where one line is too much. `matrix_bytes` says what so many lines of a matrix
    take of the memory.
    """
    tile = min(power_of_two(lines), most)
    while tile > 1 and matrix_bytes(tile) > _SHARED_BYTES:
        tile //= 2
    if matrix_bytes(tile) > _SHARED_BYTES:
        return None
    groups = max(1, 64 // tile)
    while groups > 1 and groups * matrix_bytes(tile) > _SEVERAL_BYTES:
        groups //= 2
    return tile, groups, groups * matrix_bytes(tile)


def _line(length: int) -> int:
    """Return the length of a line in the workspace: whole chunks."""
    return -(-length // 8) * 8


def _accumulate(height: int, width: int, dtype: str, **what: int) -> Plan | None:
    element, line = element_bytes(dtype), _line(height)
    block = _block(width, 64, lambda tile: line * (tile + 2) * element)
    if block is None:
        return None
    tile, groups, shared = block
    sizes = {"HEIGHT": height, "WIDTH": width, "LINE": line}
    defines = _defines(dtype, **sizes, **what, TILE=tile, GROUPS=groups)
    rows = -(-width // tile)
    return Plan(
        ("accumulate.cu",), "accumulate", defines, tile * groups, groups, shared, rows
    )


@lru_cache(maxsize=1024)
def syev_tridiagonal(
    n: int, dtype: str, uplo: str, local_bytes: int, batch: int, *, vectors: bool
) -> Reduction | None:
    """Return the plan of an eigenproblem; `batch` matters by its size alone."""
    kind = {"UPPER": int(uplo == "U"), "VECTORS": int(vectors)}
    if n < 2:
        return None
    accumulate: tuple[Plan | None, ...] = ()
    rows = 2 if vectors else 1  # of the matrix and of its vectors
    words = n * rows * element_bytes(dtype) // 4
    if n <= 32 and words <= (_ROW_WORDS if dtype.startswith("float") else 64):
        reduce = _tridiagonal_rows(n, dtype, kind)
        reduced = reflectors = 0
    else:
        reduce, reduced = _tridiagonal(n, dtype, kind, local_bytes)
        reflectors = 2 * n
        if vectors:
            what = {"COUNT": n - 1, "SHIFT": 1, "ADJOINT": 0}
            places = {"MATRIX": reduced, "FIRST": 0, "PERIOD": 2 * n, "START": 0}
            accumulate = (_accumulate(n, n, dtype, **what, **places),)
    values = _values(n, dtype, "TRIDIAGONAL", batch, vectors=vectors)
    if values is None:
        return None
    rotate: tuple[Plan | None, ...] = ()
    if vectors:
        what = {"NUMBERS": 2, "OFFSET": 0, "ACROSS": 0, "LANES": values.matrices}
        rotate = (_rotate(n, n, n, dtype, **what),)
    parts = (reduce, accumulate, values, rotate)
    return _checked(parts, n, reduced, reflectors, 2, vectors=vectors)


def _checked(
    parts: tuple[Plan, tuple[Plan | None, ...], Plan | None, tuple[Plan | None, ...]],
    order: int,
    reduced: int,
    reflectors: int,
    numbers: int,
    *,
    vectors: bool,
) -> Reduction | None:
    reduce, accumulate, values, rotate = parts
    if values is None or None in accumulate or None in rotate:
        return None
    room, turns = _room(order, vectors=vectors)
    made = tuple(p for p in accumulate if p is not None)
    turned = tuple(p for p in rotate if p is not None)
    sizes = (order, reduced, reflectors, room, turns, numbers)
    return Reduction(reduce, made, values, turned, *sizes)


def _tridiagonal_rows(n: int, dtype: str, kind: dict[str, int]) -> Plan:
    size = element_bytes(dtype)
    group = power_of_two(n)
    groups = _BLOCK // group
    words = n * size // 4 * (2 if kind["VECTORS"] else 1)
    blocks = 5 if words <= 32 else 4 if words <= 64 else 2
    sizes = {"N": n, "GROUP": group, "GROUPS": groups, "BLOCKS": blocks}
    defines = _defines(dtype, ROWS_KERNEL=None, **kind, **sizes)
    shared = groups * (3 * group + n * (n | 1)) * size
    return Plan(
        ("householder.cu",), "tridiagonalise", defines, group * groups, groups, shared
    )


def _tridiagonal(
    n: int, dtype: str, kind: dict[str, int], local_bytes: int
) -> tuple[Plan, int]:
    size = element_bytes(dtype)
    parts = 2 if dtype.startswith("complex") else 1
    side = min(256, -(-n // 32) * 32)
    split = 4 if side <= 64 else 2
    buffers = (n + split * n + (split + 33) // parts + 1) * size
    inside = n * (n | 1) * size
    in_shared = buffers + inside <= local_bytes
    reduced = n * _line(n) + (0 if in_shared else _line(n * n))
    sizes = {"COLUMNS": n, "SIDE": side, "SPLIT": split, "IN_SHARED": int(in_shared)}
    places = {"LINE": _line(n), "MATRIX": reduced}
    defines = _defines(dtype, TRIDIAGONAL=None, **kind, **sizes, **places)
    shared = buffers + (inside if in_shared else 0)
    plan = Plan(("householder.cu",), "tridiagonalise", defines, side * split, 1, shared)
    return plan, reduced


@lru_cache(maxsize=1024)
def gesvd_bidiagonal(
    m: int, n: int, dtype: str, job: str, local_bytes: int, batch: int
) -> Reduction | None:
    """Return the plan of a singular value decomposition."""
    rows, columns, flip, vectors = max(m, n), min(m, n), m < n, job != "none"
    reduce, reduced = _bidiagonal(
        (rows, columns), dtype, local_bytes, flip=flip, vectors=vectors
    )
    values = _values(columns, dtype, "BIDIAGONAL", batch, vectors=vectors)
    if values is None:
        return None
    accumulate: tuple[Plan | None, ...] = ()
    rotate: tuple[Plan | None, ...] = ()
    if vectors:
        kept = rows if job == "all" else columns
        place = {"MATRIX": reduced, "PERIOD": 4 * columns}
        left = {"COUNT": columns, "SHIFT": 0, "FIRST": 0, "START": 0}
        right = {"COUNT": columns - 1, "SHIFT": 1, "START": 2 * columns}
        right["FIRST"] = columns * _line(rows)
        accumulate = (
            _accumulate(rows, kept, dtype, **place, **left, ADJOINT=int(flip)),
            _accumulate(
                columns, columns, dtype, **place, **right, ADJOINT=int(not flip)
            ),
        )
        what = {"NUMBERS": 4, "LANES": values.matrices}
        other = {**what, "OFFSET": 0, "ACROSS": int(not flip)}
        what |= {"OFFSET": 2, "ACROSS": int(flip)}
        rotate = (
            _rotate(rows, kept, columns, dtype, **what),
            _rotate(columns, columns, columns, dtype, **other),
        )
    parts = (reduce, accumulate, values, rotate)
    return _checked(parts, columns, reduced, 4 * columns, 4, vectors=vectors)


def _bidiagonal(
    shape: tuple[int, int], dtype: str, local_bytes: int, *, flip: bool, vectors: bool
) -> tuple[Plan, int]:
    """Return the plan and the elements of its workspace per matrix."""
    size = element_bytes(dtype)
    rows, columns = shape
    inside, scratch = rows * (columns | 1) * size, 32 * 8
    group = min(256, power_of_two(rows))
    groups = max(1, 64 // group)
    while groups > 1 and groups * inside > 48 << 10:
        groups //= 2
    in_shared = scratch + inside <= local_bytes
    lines = columns * (_line(rows) + _line(columns))
    reduced = lines + (0 if in_shared else _line(rows * columns))
    sizes = {"ROWS": rows, "COLUMNS": columns, "GROUP": group, "GROUPS": groups}
    flags = {"FLIP": int(flip), "VECTORS": int(vectors), "IN_SHARED": int(in_shared)}
    places = {"LINE": _line(rows), "LINE_ACROSS": _line(columns), "MATRIX": reduced}
    defines = _defines(dtype, BIDIAGONAL=None, **sizes, **flags, **places)
    shared = scratch + (groups * inside if in_shared else 0)
    plan = Plan(
        ("householder.cu",), "bidiagonalise", defines, group * groups, groups, shared
    )
    return plan, reduced
