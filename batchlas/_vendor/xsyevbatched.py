"""cusolverDnXsyevBatched, the batched eigensolver that CuPy does not wrap.

It is looked up through CuPy's own cuSOLVER extension module: the loader then searches
the very library that CuPy is linked against, so CuPy's handles are valid for it. A
second set of bindings (nvmath-python's, say) may bring a second copy of the library,
for which they are not, and would be an import that the caller did not ask for.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from functools import cache

import cupy
import numpy as np
from cupy_backends.cuda.libs import cusolver as lib

from batchlas.exceptions import NoRouteError

# cudaDataType of the matrix, and of its eigenvalues
_CUDA_TYPES = {"f": (0, 0), "d": (1, 1), "F": (4, 0), "D": (5, 1)}
_LOWER = 0

_int, _int64 = ctypes.c_int, ctypes.c_int64
_size, _pointer = ctypes.c_size_t, ctypes.c_void_p
_SIZE_POINTER = ctypes.POINTER(_size)
# handle, params, jobz, uplo, n, type of A, A, lda, type of W, W, compute type
_COMMON = (
    *(_pointer, _pointer, _int, _int, _int64),
    *(_int, _pointer, _int64, _int, _pointer, _int),
)


@cache
def _load() -> tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer]:
    """Return the size query and the solver.

    Raises
    ------
    NoRouteError
        If the library that CuPy has loaded does not export them.
    """
    try:
        library = ctypes.CDLL(lib.__file__)
        query = library.cusolverDnXsyevBatched_bufferSize
        solver = library.cusolverDnXsyevBatched
    except (AttributeError, OSError) as error:
        message = (
            f"cuSOLVER has no cusolverDnXsyevBatched ({error}); it came with CUDA 12.6"
        )
        raise NoRouteError(message) from error
    query.argtypes = (*_COMMON, _SIZE_POINTER, _SIZE_POINTER, _int64)
    solver.argtypes = (*_COMMON, _pointer, _size, _pointer, _size, _pointer, _int64)
    query.restype = solver.restype = _int
    return query, solver


@cache
def why_missing() -> str:
    """Return what is missing, or an empty string where the routine can be called."""
    try:
        _load()
    except NoRouteError as error:
        return str(error)
    return ""


class _PerThread(threading.local):
    """Parameter objects of this thread by device, as CuPy's handles are."""

    def __init__(self) -> None:
        self.params: dict[int, int] = {}


_per_thread = _PerThread()


def _arguments(
    work: cupy.ndarray, w: cupy.ndarray, *, vectors: bool
) -> tuple[int, ...]:
    """Return what the query and the solver share, with the stream set."""
    device_id = cupy.cuda.runtime.getDevice()
    params = _per_thread.params.get(device_id)
    if params is None:
        params = _per_thread.params[device_id] = lib.createParams()
    handle = cupy.cuda.device.get_cusolver_handle()
    lib.setStream(handle, cupy.cuda.get_current_stream().ptr)
    kind, real = _CUDA_TYPES[work.dtype.char]
    n = work.shape[-1]
    head = (handle, params, int(vectors), _LOWER, n, kind, work.data.ptr, n)
    return (*head, real, w.data.ptr, kind)


def workspace_bytes(
    work: cupy.ndarray, w: cupy.ndarray, *, vectors: bool
) -> tuple[int, int]:
    """Return the device and host workspace that `solve` needs for these arrays."""
    query, _ = _load()
    on_device, on_host = _size(), _size()
    sizes = (ctypes.byref(on_device), ctypes.byref(on_host))
    _check(query(*_arguments(work, w, vectors=vectors), *sizes, len(work)))
    return on_device.value, on_host.value


def solve(
    work: cupy.ndarray, w: cupy.ndarray, codes: cupy.ndarray, *, vectors: bool
) -> None:
    """Enqueue the eigensolver over a stack.

    Parameters
    ----------
    work : cupy.ndarray, shape (batch, n, n)
        Hermitian matrices, column-major; overwritten with the vectors if wanted.
    w : cupy.ndarray, shape (batch, n)
        Receives the eigenvalues, ascending.
    codes : cupy.ndarray of int32, shape (batch,)
        Receives the status.
    vectors : bool
        Whether eigenvectors are wanted.
    """
    _, solver = _load()
    device_bytes, host_bytes = workspace_bytes(work, w, vectors=vectors)
    # Zeros, since the routine of cuSOLVER 11.7.1 takes what it finds in recycled memory
    # for its own and returns wrong vectors with a good status (pytorch issue 192483).
    # It goes back to CuPy's pool on return, which hands it out again on this stream
    # only, hence after the solver in stream order.
    scratch = cupy.zeros(device_bytes, "u1")
    host = np.empty(host_bytes, "u1")
    buffers = (scratch.data.ptr, device_bytes, host.ctypes.data, host_bytes)
    arguments = _arguments(work, w, vectors=vectors)
    _check(solver(*arguments, *buffers, codes.data.ptr, len(work)))
    if host_bytes:
        _keep(host)


_HostBuffer = np.ndarray[tuple[int], np.dtype[np.uint8]]
_kept: deque[tuple[cupy.cuda.Event, _HostBuffer]] = deque()
_kept_for_graphs: list[_HostBuffer] = []
_lock = threading.Lock()


def _keep(host: _HostBuffer) -> None:
    """Hold host memory until the work enqueued so far is done, without waiting."""
    if cupy.cuda.get_current_stream().is_capturing():
        _kept_for_graphs.append(host)  # a graph may be launched at any later time
        return
    event = cupy.cuda.Event(disable_timing=True)
    event.record()
    with _lock:
        _kept.append((event, host))
        while _kept and _kept[0][0].done:
            _kept.popleft()


def _check(code: int) -> None:
    if code:
        raise lib.CUSOLVERError(code)
