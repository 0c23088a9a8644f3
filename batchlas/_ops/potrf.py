"""potrf, the Cholesky factorisation: the decision what runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from batchlas import _select as select
from batchlas._backends import borrowed, in_host_memory, stacked
from batchlas._kernels import lane
from batchlas._kernels.limits import fits_in_private_memory
from batchlas._kernels.renderer_choice import DPEX, renderer_for
from batchlas._ops.cuda import POTRF_FAMILIES, POTRF_ORDER, can_run_potrf, launch_potrf
from batchlas._ops.families import (
    Threads,
    Vendor,
    can_run_library,
    library_families,
)
from batchlas._runtime.dtypes import NAME_OF
from batchlas._vendor import adapter_of

if TYPE_CHECKING:
    from batchlas._backends import Backend
    from batchlas._runtime.devices import Device
    from batchlas._runtime.lease import Layout


class PotrfCall(NamedTuple):
    """What a choice may depend on."""

    dtype: str
    array: str
    uplo: str
    n: int
    batch: int


@dataclass(frozen=True, slots=True)
class Lane(select.Family):
    """One matrix per lane of a vector, or per thread of a group, of `width`.

    While a vector of matrices is factored, the one `ahead` vectors further is
    prefetched; 0 for none. A renderer without prefetches ignores it.
    """

    name: ClassVar[str] = "lane"
    width: int
    ahead: int


def candidates(dtype: str, kind: str) -> tuple[select.Family, ...]:
    """Return every choice; a vector fills 256 or 512 bits."""
    if kind == "cupy":
        return (*POTRF_FAMILIES, *library_families(dtype, kind))
    real_bytes = 4 if dtype in ("float32", "complex64") else 8
    widths = (32 // real_bytes, 64 // real_bytes)
    lanes = (Lane(width, ahead) for width in widths for ahead in (1, 0))
    return (*lanes, *library_families(dtype, kind))


def can_run(choice: select.Family, call: PotrfCall, device: Device) -> bool:
    """Whether a choice would factor this call rightly."""
    if choice in POTRF_FAMILIES:
        return can_run_potrf(choice, call, device)
    if not isinstance(choice, Lane):
        return can_run_library(choice, call, device)
    rendering = renderer_for(device)
    if rendering is None:
        return False
    if rendering.renderer == DPEX:
        from batchlas._kernels import lane_dpex

        return lane_dpex.fits(call.n, call.dtype, choice.width, device)
    return fits_in_private_memory(call.n, call.dtype, choice.width)


def scratch(choice: select.Family, call: PotrfCall, device: Device) -> Layout | None:
    """Return what a choice borrows of the workspace: room to fill up a small batch."""
    if not isinstance(choice, Lane):
        return None
    rendering = renderer_for(device)
    is_dpex = rendering is not None and rendering.renderer == DPEX
    return _lane_scratch(call, choice.width, device if is_dpex else None)


def _lane_scratch(call: PotrfCall, width: int, dpex: Device | None) -> Layout | None:
    """Return a kernel's scratch; `dpex` is the device if numba-dpex renders it."""
    if dpex is None:
        return lane.potrf_scratch(call.batch, call.n, call.dtype, width)
    from batchlas._kernels import lane_dpex

    return lane_dpex.potrf_scratch(call.batch, call.n, call.dtype, width, dpex)


SPEC = select.OpSpec(
    op="potrf",
    library="lapack",
    keys=PotrfCall._fields,
    candidates=candidates,
    can_run=can_run,
    last_resort=(*POTRF_ORDER, Vendor.name, Threads.name, Lane.name),
    scratch=scratch,
)


def key_of(backend: Backend, a: Any, uplo: str) -> PotrfCall:
    """Return the table key of a call on ``a``, of shape ``(..., n, n)``."""
    n = a.shape[-1]
    return PotrfCall(NAME_OF[a.dtype.char], backend.kind, uplo, n, a.size // (n * n))


def potrf(backend: Backend, a: Any, uplo: str) -> tuple[Any, Any]:
    """Factor a checked stack.

    Parameters
    ----------
    backend : Backend
        The backend of `a`.
    a : array, shape (..., n, n)
        Not empty, of one of the four LAPACK dtypes; only triangle `uplo` is read.
    uplo : {"L", "U"}

    Returns
    -------
    factor : array, shape (..., n, n)
        Triangular, its other triangle zero.
    info : int32 array of the batch's shape, or None if no matrix failed
    """

    def launch(choice: select.Family) -> tuple[Any, Any]:
        if choice in POTRF_FAMILIES:
            return launch_potrf(choice, a, uplo)
        if isinstance(choice, Lane):
            return _launch_lane(backend, a, call, choice)
        return adapter_of(backend.kind, choice.name).potrf(a, uplo)

    call = key_of(backend, a, uplo)
    return select.run(SPEC, call, backend.device(a), launch)


def _launch_lane(
    backend: Backend, a: Any, call: PotrfCall, choice: Lane
) -> tuple[Any, Any]:
    """Run the kernel of the renderer that the array's device takes."""
    uplo, width, axes, batch = call.uplo, choice.width, a.ndim - 2, call.batch
    factor = backend.empty(a.shape, a.dtype, a)
    info = backend.empty(a.shape[:-2], np.dtype(np.int32), a)
    device = backend.device(a)
    rendering = renderer_for(device)
    if rendering is not None and rendering.is_noteworthy:
        select.note(rendering)
    arrays = backend.packed(a), factor, info
    if rendering is not None and rendering.renderer == DPEX:
        from batchlas._kernels import lane_dpex

        with borrowed(backend, a, _lane_scratch(call, width, device)) as room:
            views = stacked(arrays, axes, batch)
            failed = lane_dpex.potrf(views, uplo, width, device, room)
    else:
        queue = backend.queue(a)
        with borrowed(backend, a, _lane_scratch(call, width, None)) as room:
            views = [in_host_memory(backend, array) for array in arrays]
            padded = [in_host_memory(backend, array) for array in room]
            views = stacked(views, axes, batch)
            failed = lane.potrf(queue, views, uplo, width, choice.ahead, padded)
    return factor, info if failed else None
