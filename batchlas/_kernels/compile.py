"""From rendered text to something that runs, and the launch of it.

Programs are cached for the life of the process.  What the device cannot do is found
here, before any launch: the CPU runtime ignores a kernel that asks for too much
work-group memory and leaves its output untouched.
"""

from __future__ import annotations

import ctypes
import linecache
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from batchlas._kernels.ir import Binary, BinaryOp, Const, DType, Expr, ScalarArg
from batchlas._kernels.render.rendered import ArgKind
from batchlas._kernels.spirv import compile_spirv
from batchlas._runtime.profile import trace_launch
from batchlas._runtime.sycl import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from batchlas._kernels.render.rendered import Rendered


class Device(Protocol):
    """What is asked of a dpctl device."""

    name: str
    local_mem_size: int
    max_work_group_size: int
    has_aspect_fp64: bool


class Queue(Protocol):
    """What is asked of a dpctl queue."""

    sycl_device: Device
    sycl_context: object
    backend: object

    def submit(
        self, kernel: object, args: list[object], size: list[int], *local: list[int]
    ) -> object:
        """Run a kernel and wait for it."""


class Program(Protocol):
    """What is asked of a dpctl program."""

    def get_sycl_kernel(self, name: str) -> object:
        """Return a kernel by its name."""


OPENCL_OPTIONS: Final = "-cl-std=CL2.0"


class CompileError(RuntimeError):
    """A kernel does not compile, or needs more than the device has."""


@dataclass(frozen=True, slots=True)
class OpenCLKernel:
    """A compiled kernel and all of a launch that does not change between calls.

    `converters` turn the values of a call into kernel arguments, in order, and
    `count_groups` gives the number of work-groups from the same values.
    """

    rendered: Rendered
    handle: object
    converters: tuple[Callable[[Any], object], ...]
    count_groups: Callable[[Sequence[Any]], int]
    local_range: list[int] | None


def compile_opencl(rendered: Rendered, queue: Queue) -> OpenCLKernel:
    """Return the kernel compiled for the queue's device and context.

    OpenCL queues take the text, Level Zero queues SPIR-V made of it.

    Raises
    ------
    CompileError
        If the device lacks what the kernel needs, or the compiler refuses the text.
    """
    key = (rendered.digest, rendered.args, queue.sycl_context, queue.sycl_device)
    known = _COMPILED.get(key)
    if known is None:
        check_device(rendered, queue.sycl_device)
        with in_turn:
            known = _COMPILED[key] = prepare_opencl(rendered, _program(rendered, queue))
    return known


_COMPILED: dict[tuple[object, ...], OpenCLKernel] = {}


def launch_opencl(kernel: OpenCLKernel, queue: Queue, values: Sequence[object]) -> None:
    """Run a kernel on a queue and wait for it.

    `values` are the kernel's arguments in order: for an array the address of its first
    element or its USM memory, as it was rendered, for a scalar a number.  The caller
    keeps the memory alive.
    """
    groups = kernel.count_groups(values)
    if groups == 0:
        return
    args = [convert(v) for convert, v in zip(kernel.converters, values, strict=True)]
    local = kernel.local_range
    with in_turn:
        if local is None:
            event = queue.submit(kernel.handle, args, [groups])
        else:
            event = queue.submit(kernel.handle, args, [groups * local[0]], local)
        trace_launch(kernel.rendered.entry, groups, event)


def check_device(rendered: Rendered, device: Device) -> None:
    """Raise `CompileError` if a device lacks what the kernel needs."""
    limits = (
        ("bytes of work-group memory", rendered.local_bytes, device.local_mem_size),
        ("threads in a group", rendered.group_size, device.max_work_group_size),
    )
    for what, need, have in limits:
        if need > have:
            msg = f"{rendered.entry} needs {need} {what}, {device.name} has {have}"
            raise CompileError(msg)
    wide = {DType.FLOAT64, DType.COMPLEX128}
    if any(arg.dtype in wide for arg in rendered.args) and not device.has_aspect_fp64:
        msg = f"{rendered.entry} computes in float64, which {device.name} cannot"
        raise CompileError(msg)


def _program(rendered: Rendered, queue: Queue) -> Program:
    import dpctl
    from dpctl import program

    try:
        if queue.backend == dpctl.backend_type.level_zero:
            spirv = compile_spirv(rendered.source)
            made: Program = program.create_program_from_spirv(queue, spirv)
        else:
            source = rendered.source
            made = program.create_program_from_source(queue, source, OPENCL_OPTIONS)
    except (program.SyclProgramCompilationError, ValueError) as error:
        msg = f"{rendered.entry} does not compile: {error}\n{rendered.source}"
        raise CompileError(msg) from error
    return made


def prepare_opencl(rendered: Rendered, program: Program) -> OpenCLKernel:
    """Return the kernel of a program that was made of its text or of its SPIR-V."""
    names = [arg.name for arg in rendered.args]
    return OpenCLKernel(
        rendered=rendered,
        handle=program.get_sycl_kernel(rendered.entry),
        converters=tuple(_converter(a.kind, a.dtype) for a in rendered.args),
        count_groups=count_function(rendered.groups, names),
        local_range=[rendered.group_size] if rendered.group_size else None,
    )


def _converter(kind: ArgKind, dtype: DType) -> Callable[[Any], object]:
    if kind is ArgKind.ADDRESS:
        return ctypes.c_uint64
    return _SCALARS[dtype] if kind is ArgKind.SCALAR else _as_is


def _as_is(memory: object) -> object:
    return memory


_SCALARS: dict[DType, Callable[[Any], object]] = {
    DType.BOOL: ctypes.c_int32,
    DType.INT32: ctypes.c_int32,
    DType.INT64: ctypes.c_int64,
    DType.FLOAT32: ctypes.c_float,
    DType.FLOAT64: ctypes.c_double,
}


def count_function(
    groups: Expr, names: Sequence[str]
) -> Callable[[Sequence[Any]], int]:
    """Return a function from a call's values to the value of a launch expression."""
    if isinstance(groups, Const):
        number = int(groups.value.real)
        return lambda _values: number
    if isinstance(groups, ScalarArg):
        place = names.index(groups.name)
        return lambda values: int(values[place])
    if isinstance(groups, Binary) and groups.op in _LAUNCH_OPS:
        a, b = count_function(groups.a, names), count_function(groups.b, names)
        operation = _LAUNCH_OPS[groups.op]
        return lambda values: operation(a(values), b(values))
    msg = f"{groups!r} is not known at launch"
    raise CompileError(msg)


_LAUNCH_OPS: dict[BinaryOp, Callable[[int, int], int]] = {
    BinaryOp.ADD: int.__add__,
    BinaryOp.SUB: int.__sub__,
    BinaryOp.MUL: int.__mul__,
    BinaryOp.FLOORDIV: int.__floordiv__,
    BinaryOp.MOD: int.__mod__,
}


def compile_dpex(rendered: Rendered) -> object:
    """Return the text as a numba-dpex kernel; it compiles at the first launch.

    The text is kept where tracebacks look for source lines.
    """
    import numba_dpex

    known = _DPEX.get((rendered.digest, rendered.entry))
    if known is None:
        filename = f"<batchlas kernel {rendered.entry} {rendered.digest}>"
        lines = rendered.source.splitlines(keepends=True)
        linecache.cache[filename] = len(rendered.source), None, lines, filename
        module: dict[str, object] = {}
        code = compile(rendered.source, filename, "exec")
        exec(code, module)  # the one place where rendered text becomes code
        # 1/0 is infinite as in NumPy; by default the thread would leave the kernel.
        kernel = numba_dpex.kernel(error_model="numpy")
        known = _DPEX[rendered.digest, rendered.entry] = kernel(module[rendered.entry])
    return known


_DPEX: dict[tuple[str, str], object] = {}


def launch_dpex(rendered: Rendered, values: Sequence[Any]) -> None:
    """Run numba-dpex text on dpnp arrays and wait for it.

    `values` are the kernel's arguments in order, without work-group memory, arrays
    flat. The caller has asked whether the device has what the kernel needs.
    """
    import numba_dpex
    from numba_dpex import kernel_api

    count = count_function(rendered.groups, [arg.name for arg in rendered.args])
    groups, size = count(values), rendered.group_size
    if groups == 0:
        return
    whole = (groups * max(size, 1),)
    grid = numba_dpex.NdRange(whole, (size,)) if size else numba_dpex.Range(*whole)
    local = [
        kernel_api.LocalAccessor((arg.count,), dtype=np.dtype(arg.dtype.value))
        for arg in rendered.args
        if arg.kind is ArgKind.LOCAL
    ]
    numba_dpex.call_kernel(compile_dpex(rendered), grid, *values, *local)
    trace_launch(rendered.entry, groups)
