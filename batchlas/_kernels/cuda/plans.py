"""How each CUDA kernel is compiled and launched for one shape, or that it cannot be.

Decided here: block sizes and shared memory, from the shape and the dtype. None of it
is a matter of taste between kernels: that is what tables are for. A plan is None where
the kernel would not fit; ``can_run`` asks for that, so nothing here imports CuPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

_REAL = {
    "float32": ("float", 1, 4),
    "float64": ("double", 1, 8),
    "complex64": ("float", 2, 4),
    "complex128": ("double", 2, 8),
}
# What a block may have on every device since sm_70 after opting in, less what the
# driver keeps; larger devices are asked for what they have.
_REGISTER_WORDS = 200  # 4-byte registers that one thread's matrix may take


@dataclass(frozen=True, slots=True)
class Plan:
    """One compiled kernel and its launch.

    Attributes
    ----------
    sources : tuple of str
        The files, in order.
    kernel : str
        The function in them.
    defines : tuple of str
        Macros, ``NAME=value``.
    threads : int
        Per block.
    matrices : int
        Per block.
    shared_bytes : int
        Per block.
    rows : int
        Blocks along the second axis of the grid.
    """

    sources: tuple[str, ...]
    kernel: str
    defines: tuple[str, ...]
    threads: int
    matrices: int
    shared_bytes: int
    rows: int = 1


def _defines(dtype: str, **given: int | str | None) -> tuple[str, ...]:
    real, parts, _ = _REAL[dtype]
    head = (f"REAL={real}", f"PARTS={parts}")
    rest = (k if v is None else f"{k}={v}" for k, v in given.items())
    return (*head, *rest)


def element_bytes(dtype: str) -> int:
    """Return the size of one element."""
    _, parts, real_bytes = _REAL[dtype]
    return parts * real_bytes


def power_of_two(count: int) -> int:
    """Return the least power of two that is not below `count`."""
    return 1 << (count - 1).bit_length()


def _thread_block(slot_bytes: int) -> int | None:
    """Return threads per block where each has a slot of shared memory."""
    for threads in (128, 64, 32):
        if threads * slot_bytes <= 48 << 10:
            return threads
    return 32 if 32 * slot_bytes <= 96 << 10 else None


@lru_cache(maxsize=1024)
def potrf_tiny(n: int, dtype: str, uplo: str) -> Plan | None:
    """Return the plan of a thread per matrix: while a triangle fits in registers."""
    size = element_bytes(dtype)
    if n * (n + 1) // 2 * size // 4 > _REGISTER_WORDS:
        return None
    _, parts, real_bytes = _REAL[dtype]
    slot_bytes = (n * n * parts | 1) * real_bytes
    threads = _thread_block(slot_bytes)
    if threads is None:
        return None
    upper = int(uplo == "U")
    defines = _defines(dtype, TINY=None, N=n, UPPER=upper, THREADS=threads)
    shared = threads * slot_bytes
    return Plan(("potrf.cu",), "potrf", defines, threads, threads, shared)


@lru_cache(maxsize=1024)
def potrf_rows(n: int, dtype: str, uplo: str) -> Plan | None:
    """Return the plan of a thread per row: while a row fits in registers."""
    size = element_bytes(dtype)
    if n > 64 or n * size // 4 > 128:
        return None
    group = power_of_two(n)
    group_bytes = (2 * group + n * (n | 1)) * size
    groups = max(1, 64 // group)
    upper = int(uplo == "U")
    defines = _defines(dtype, ROWS=None, N=n, UPPER=upper, GROUP=group, GROUPS=groups)
    shared = groups * group_bytes
    return Plan(("potrf.cu",), "potrf", defines, group * groups, groups, shared)


@lru_cache(maxsize=1024)
def potrf_cta(n: int, dtype: str, uplo: str, local_bytes: int) -> Plan | None:
    """Return the plan of a block per matrix: while it fits in shared memory."""
    size, width = element_bytes(dtype), 16
    padded = -(-n // width) * width
    group = max(64, -(-padded // 32) * 32)
    packed = padded * (padded + 1) // 2
    shared = (width * padded + 2 * group + packed) * size
    if group > 1024 or shared > local_bytes:
        return None
    sizes = {"N": n, "UPPER": int(uplo == "U"), "GROUP": group}
    defines = _defines(dtype, PANEL=None, **sizes, WIDTH=width, PADDED=padded)
    return Plan(("potrf.cu",), "potrf", defines, group, 1, shared)


@dataclass(frozen=True, slots=True)
class Blocked:
    """Plans of a factorisation by panels of ``width`` columns between products."""

    copy: Plan
    panel: Plan
    finish: Plan
    width: int


@lru_cache(maxsize=1024)
def potrf_blocked(n: int, dtype: str, uplo: str) -> Blocked | None:
    """Return the plan of panels in registers, a thread per row: while a block can."""
    if n > 1024:
        return None
    size = element_bytes(dtype)
    width = 32 if size <= 8 and n <= 512 else 16
    group = -(-n // 32) * 32
    sizes = {"N": n, "UPPER": int(uplo == "U"), "GROUP": group, "WIDTH": width}
    defines = _defines(dtype, BLOCKED=None, **sizes)
    head = ("potrf.cu",), "copy_triangle", defines, 256, 1
    panel = Plan(("potrf.cu",), "factor_panel", defines, group, 1, 2 * group * size)
    finish = Plan(("potrf.cu",), "spoil_failed", defines, 256, 1, 0)
    return Blocked(Plan(*head, 0, -(-n * n // 4096)), panel, finish, width)


@lru_cache(maxsize=1024)
def syev_jacobi(n: int, dtype: str, uplo: str, *, vectors: bool) -> Plan | None:
    """Return the plan of Jacobi rotations by one thread per matrix."""
    size = element_bytes(dtype)
    if n > 8 or (3 * n * n // 2) * size // 4 > 2 * _REGISTER_WORDS:
        return None
    _, parts, real_bytes = _REAL[dtype]
    stride = n * n * parts | 1
    threads = _thread_block(stride * real_bytes)
    if threads is None:
        return None
    sizes = {"N": n, "UPPER": int(uplo == "U"), "VECTORS": int(vectors)}
    defines = _defines(dtype, SYEV=None, **sizes, THREADS=threads, STRIDE=stride)
    shared = threads * stride * real_bytes
    return Plan(("jacobi.cu",), "syev", defines, threads, threads, shared)


@lru_cache(maxsize=1024)
def gesvd_jacobi(m: int, n: int, dtype: str, job: str) -> Plan | None:
    """Return the plan of one-sided Jacobi rotations by one thread per matrix."""
    rows, columns = max(m, n), min(m, n)
    kept = {"none": 0, "thin": columns, "all": rows}[job]
    words = rows * columns + columns * columns
    if rows > 16 or columns > 8 or words * element_bytes(dtype) // 4 > 400:
        return None
    _, parts, real_bytes = _REAL[dtype]
    stride = max(rows * columns, rows * kept, columns * columns) * parts | 1
    threads = _thread_block(stride * real_bytes)
    if threads is None:
        return None
    shape = {"ROWS": rows, "COLUMNS": columns, "KEPT": kept, "FLIP": int(m < n)}
    defines = _defines(dtype, GESVD=None, **shape, THREADS=threads, STRIDE=stride)
    shared = threads * stride * real_bytes
    return Plan(("jacobi.cu",), "gesvd", defines, threads, threads, shared)
