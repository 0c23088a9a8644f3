"""The native families on CuPy arrays: which there are, what they take, their launch.

Decided here: candidates and ``can_run`` of the hand-written CUDA kernels, for all ops.
Speed is not: that is what tables say. Plans are imported by the first question about a
CuPy array, CuPy by the first launch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from batchlas import _select as select

if TYPE_CHECKING:
    from batchlas._runtime.devices import Device

Tiny = select.family("tiny")
"""One thread per matrix, in registers: Cholesky, or Jacobi's rotations."""
Rows = select.family("rows")
"""One thread per row of a matrix, the row in registers."""
Cta = select.family("cta")
"""One block per matrix, in shared memory."""
Blocked = select.family("blocked", uses_library=True)
"""Panels of a matrix, a thread per row, between cuBLAS's batched products."""
Tridiagonal = select.family("tridiagonal")
"""Reflectors to a tridiagonal matrix, then implicit QR."""
GolubKahan = select.family("golub")
"""Reflectors to a bidiagonal matrix, then implicit QR."""

POTRF_FAMILIES = (Tiny(), Rows(), Cta(), Blocked())
SYEV_FAMILIES = (Tiny(), Tridiagonal())
GESVD_FAMILIES = (Tiny(), GolubKahan())

# Before the libraries where no table helps: the most specialised first.
POTRF_ORDER = tuple(each.name for each in POTRF_FAMILIES)
SYEV_ORDER = tuple(each.name for each in SYEV_FAMILIES)
GESVD_ORDER = tuple(each.name for each in GESVD_FAMILIES)

# Every batch below this is one to a plan, which only sizes blocks by it.
_FEW = 1


def can_run_potrf(choice: select.Family, call: Any, device: Device) -> bool:
    """Whether a matrix fits where the family keeps it."""
    from batchlas._kernels.cuda import plans

    shape = call.n, call.dtype, call.uplo
    if choice.name == Tiny.name:
        return plans.potrf_tiny(*shape) is not None
    if choice.name == Rows.name:
        return plans.potrf_rows(*shape) is not None
    if choice.name == Blocked.name:
        return device.has_vendor and plans.potrf_blocked(*shape) is not None
    return plans.potrf_cta(*shape, device.local_mem_bytes) is not None


def can_run_syev(choice: select.Family, call: Any, device: Device) -> bool:
    """Whether a matrix fits where the family keeps it."""
    from batchlas._kernels.cuda import plans, reductions

    vectors = call.jobz == "V"
    if choice.name == Tridiagonal.name:
        shape = call.n, call.dtype, "L", device.local_mem_bytes, _FEW
        return reductions.syev_tridiagonal(*shape, vectors=vectors) is not None
    return plans.syev_jacobi(call.n, call.dtype, "L", vectors=vectors) is not None


def can_run_gesvd(choice: select.Family, call: Any, device: Device) -> bool:
    """Whether a matrix fits where the family keeps it."""
    from batchlas._kernels.cuda import plans, reductions

    if choice.name == GolubKahan.name:
        shape = call.m, call.n, call.dtype, call.vec, device.local_mem_bytes, _FEW
        return reductions.gesvd_bidiagonal(*shape) is not None
    return plans.gesvd_jacobi(call.m, call.n, call.dtype, call.vec) is not None


def launch_potrf(choice: select.Family, a: Any, uplo: str) -> tuple[Any, Any]:
    """Launch; see `batchlas._ops.potrf.potrf`."""
    from batchlas._kernels.cuda import launch

    return launch.potrf(choice.name, a, uplo)


def launch_syev(
    choice: select.Family, a: Any, uplo: str, *, vectors: bool
) -> tuple[Any, Any, Any]:
    """Launch; see `batchlas._ops.syev.syev`."""
    from batchlas._kernels.cuda import launch, launch_reductions

    if choice.name == Tridiagonal.name:
        return launch_reductions.syev_tridiagonal(a, uplo, vectors=vectors)
    return launch.syev_jacobi(a, uplo, vectors=vectors)


def launch_gesvd(choice: select.Family, a: Any, job: str) -> tuple[Any, Any, Any, Any]:
    """Launch; see `batchlas._ops.gesvd.gesvd`."""
    from batchlas._kernels.cuda import launch, launch_reductions

    if choice.name == GolubKahan.name:
        return launch_reductions.gesvd_bidiagonal(a, job)
    return launch.gesvd_jacobi(a, job)
