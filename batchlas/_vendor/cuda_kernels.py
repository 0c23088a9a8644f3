"""The CUDA kernels around a vendor routine: staging its input, emitting its results.

Decided here: how ``stage.cu`` is compiled and launched. What a routine needs staged and
how its results lie in memory is known to `batchlas._vendor.cusolver` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import cupy

if TYPE_CHECKING:
    from collections.abc import Iterator

# Which part of a matrix is read or kept; the numbers are those of stage.cu.
PARTS = {"A": 0, "L": 1, "U": 2}
_SCAN, _WRITE = 1, 2

_REAL = {"f": "float", "d": "double", "F": "float", "D": "double"}

_THREADS = 256
_MOST_BLOCKS = 1 << 20  # of one grid axis; the kernels stride on from there
_BLOCKS = 4096  # as many fill a device: beyond, no more blocks share a matrix
# Elements up to which one row of blocks both scans and writes a matrix, and the batch
# from which it always does: enough blocks then to fill the device either way.
_FUSED_ELEMENTS = 4096
_FUSED_BATCH = 1024


class View(NamedTuple):
    """A stack as the kernels read it; strides in bytes, `owner` keeps it alive."""

    pointer: int
    batch: int
    batch_stride: int
    row_stride: int
    column_stride: int
    owner: cupy.ndarray

    def transposed(self) -> View:
        """Return the same stack with every matrix transposed."""
        return self._replace(
            row_stride=self.column_stride, column_stride=self.row_stride
        )


@dataclass(frozen=True, slots=True)
class Status:
    """Per-matrix state of one piece of a batch.

    Attributes
    ----------
    flags : cupy.ndarray of int32
        Written by `prepare`: non-zero for a matrix that is not finite.
    codes : cupy.ndarray of int32
        The vendor routine's own status, which it overwrites.
    """

    flags: cupy.ndarray
    codes: cupy.ndarray

    def __getitem__(self, piece: slice) -> Status:
        """Return the state of part of the matrices."""
        return Status(self.flags[piece], self.codes[piece])


def new_status(batch: int) -> Status:
    """Return an all-good state for `batch` matrices."""
    flags, codes = cupy.zeros((2, batch), "i4")
    return Status(flags, codes)


def view_of(a: cupy.ndarray) -> View:
    """Describe `a`, copying it only where its batch axes have no single stride."""
    stride = _batch_stride(a.shape[:-2], a.strides[:-2])
    if stride is None:
        a = cupy.ascontiguousarray(a)
        stride = a.strides[-3]
    batch = 1
    for length in a.shape[:-2]:
        batch *= length
    return View(a.data.ptr, batch, stride, a.strides[-2], a.strides[-1], a)


def addresses(
    stack: cupy.ndarray, *others: cupy.ndarray | None
) -> Iterator[tuple[int, ...]]:
    """Yield the address of every matrix of `stack`, with its fellows in `others`.

    All are packed; None has the address 0. By arithmetic, since slicing a CuPy array
    costs several times a launch.
    """
    stacks = (stack, *others)
    starts = [0 if x is None else x.data.ptr for x in stacks]
    steps = [0 if x is None else x.nbytes // len(x) for x in stacks]
    for i in range(len(stack)):
        yield tuple(a + i * b for a, b in zip(starts, steps, strict=True))


def _batch_stride(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Return the step between successive matrices in bytes; None if it varies."""
    step = expected = None
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length == 1:
            continue
        if step is None:
            step = stride
        elif stride != expected:
            return None
        expected = stride * length
    return step or 0


class _Kernels(NamedTuple):
    """What ``stage.cu`` holds."""

    prepare: cupy.RawKernel
    arrange: cupy.RawKernel
    emit: cupy.RawKernel


@cache
def _kernels(char: str) -> _Kernels:
    """Return the kernels for a dtype; CuPy keeps them per device."""
    text = files("batchlas._vendor").joinpath("stage.cu").read_text(encoding="utf-8")
    parts = 2 if char in "FD" else 1
    options = ("-std=c++17", f"-DREAL={_REAL[char]}", f"-DPARTS={parts}")
    module = cupy.RawModule(code=text, options=options)
    return _Kernels(*(module.get_function(name) for name in _Kernels._fields))


def prepare(
    view: View,
    out: cupy.ndarray,
    status: Status,
    *,
    part: str = "A",
    mirror: bool = False,
    pointers: cupy.ndarray | None = None,
) -> None:
    """Copy a stack into the working buffer `out` and flag what is not finite.

    Parameters
    ----------
    view : View
        The source. Its first ``len(out)`` matrices are read.
    out : cupy.ndarray, shape (batch, m, n), C-contiguous
        Receives the matrices. One that is not finite becomes the identity; a lone
        triangle keeps the leading block before its first non-finite entry, in which
        Cholesky may meet an earlier bad minor.
    status : Status
        Its flags are overwritten.
    part : {"A", "L", "U"}
        What is read: all, or one triangle, whose diagonal's imaginary part is ignored.
    mirror : bool
        Write the other triangle too, as the conjugate mirror image, instead of zeros.
    pointers : cupy.ndarray of int64, shape (batch,), optional
        Receives the address of every matrix of `out`.
    """
    batch, m, n = out.shape
    kernel = _kernels(out.dtype.char).prepare
    head = (view.pointer, *view[2:5], out.data.ptr, status.flags.data.ptr)
    pointer = 0 if pointers is None else pointers.data.ptr
    tail = (pointer, batch, m, n, PARTS[part], int(mirror))
    if m * n <= _FUSED_ELEMENTS or batch >= _FUSED_BATCH:
        _launch(kernel, batch, m * n, (*head, *tail, _SCAN | _WRITE), is_whole=True)
        return
    for phase in (_SCAN, _WRITE):
        _launch(kernel, batch, m * n, (*head, *tail, phase))


def arrange(values: cupy.ndarray, out: cupy.ndarray) -> cupy.ndarray:
    """Write values in ascending order; return which one of a matrix is where.

    Parameters
    ----------
    values, out : cupy.ndarray, shape (batch, n), C-contiguous
        Real, and different memory.
    """
    batch, n = values.shape
    order = cupy.empty(values.shape, "i4")
    kernel = _kernels(values.dtype.char).arrange
    pointers = (values.data.ptr, out.data.ptr, order.data.ptr)
    _launch(kernel, batch, n, (*pointers, batch, n))
    return order


def emit(  # noqa: PLR0913 - what one kernel is told
    source: cupy.ndarray,
    strides: tuple[int, int, int],
    out: cupy.ndarray,
    status: Status,
    *,
    part: str = "A",
    conjugate: bool = False,
    order: cupy.ndarray | None = None,
    info: cupy.ndarray | None = None,
) -> None:
    """Write one result of a routine, NaN for every matrix that failed.

    Parameters
    ----------
    source : cupy.ndarray
        Where the routine left it; `out` itself for a result that is already in place.
    strides : tuple of int
        Steps inside `source` over matrices, rows and columns, in elements.
    out : cupy.ndarray, shape (batch, rows, columns), C-contiguous
    status : Status
        Of these matrices.
    part : {"A", "L", "U"}
        What is kept; the rest becomes zero.
    conjugate : bool
        Write the complex conjugate.
    order : cupy.ndarray of int32, shape (batch, columns), optional
        Which column of the source is the j-th one of the result.
    info : cupy.ndarray of int32, shape (batch,), optional
        Receives the final status: the routine's own, and where that is 0 for a matrix
        that was not finite, the order of its first leading block that is not.
    """
    batch, rows, columns = out.shape
    kernel = _kernels(out.dtype.char).emit
    arguments = (
        source.data.ptr,
        *strides,
        out.data.ptr,
        0 if order is None else order.data.ptr,
        batch,
        rows,
        columns,
        PARTS[part],
        int(conjugate),
        status.flags.data.ptr,
        status.codes.data.ptr,
        0 if info is None else info.data.ptr,
    )
    _launch(kernel, batch, rows * columns, arguments)


def _launch(
    kernel: cupy.RawKernel,
    batch: int,
    count: int,
    arguments: tuple[int, ...],
    *,
    is_whole: bool = False,
) -> None:
    """Enqueue a kernel on the current stream over `batch` matrices of `count`.

    Every argument is a Python int, which CuPy passes as 64 bits, pointers included.
    Blocks share a matrix where there are few, unless it must be a block's as a whole.
    """
    lanes = min(_THREADS, 1 << (count - 1).bit_length())
    rows = _THREADS // lanes
    blocks = min(-(-batch // rows), _MOST_BLOCKS)
    slices = 1 if is_whole else min(-(-count // lanes), max(1, _BLOCKS // blocks))
    kernel((blocks, slices), (lanes, rows), arguments)
