"""Streams, graph capture and the CuPy backend record on a real GPU."""

from __future__ import annotations

import contextlib
import time

import numpy as np
import pytest
import stacks

if stacks.gpu_missing():
    pytest.skip(stacks.gpu_missing(), allow_module_level=True)

import cupy
from stacks import positive

from batchlas._backends import cupy as backend
from batchlas._vendor import cusolver

pytestmark = pytest.mark.gpu

SPIN = cupy.RawKernel(
    'extern "C" __global__ void spin(long long cycles) {'
    " const long long start = clock64(); while (clock64() - start < cycles) {} }",
    "spin",
)
CALLS = {
    "potrf": lambda a: cusolver.potrf(a, "L")[0],
    "syev": lambda a: cusolver.syev(a, "L", vectors=True)[0],
    "gesvd": lambda a: cusolver.gesvd(a, "thin")[1],
}


@pytest.mark.parametrize("op", CALLS)
def test_the_current_stream_is_used_without_waiting(op):
    stream = cupy.cuda.Stream(non_blocking=True)
    host = positive((64,), 8, "d")
    want = cupy.asnumpy(CALLS[op](cupy.asarray(host)))
    with stream:
        a = cupy.zeros(host.shape)
        fresh = cupy.asarray(host)
        CALLS[op](fresh)  # compiles, and fills the stream's pool
        stream.synchronize()
        start = time.perf_counter()
        SPIN((1,), (1,), (1_000_000_000,))  # half a second or so
        a[...] = fresh
        result = CALLS[op](a)
        waited = stream.done
        enqueued = time.perf_counter() - start
        stream.synchronize()
        assert np.array_equal(result.get(), want)
    if waited and op != "potrf":
        pytest.skip(f"cuSOLVER's own routine for {op} waits ({enqueued:.3f} s)")
    assert not waited


@pytest.mark.parametrize("op", CALLS)
def test_graph_capture(op):
    stream = cupy.cuda.Stream(non_blocking=True)
    first, second = (cupy.asarray(positive((64,), 8, "d") * k) for k in (1, 4))
    want = CALLS[op](second).get()
    with stream:
        a = first.copy()
        for _ in range(2):
            CALLS[op](a)  # the pool must not allocate during the capture
        stream.synchronize()
        stream.begin_capture()
        try:
            result = CALLS[op](a)
            graph = stream.end_capture()
        except Exception as error:  # noqa: BLE001 - whatever the vendor raises
            reason = f"{type(error).__name__}: {error}"
            _abandon(stream)
            pytest.skip(f"cuSOLVER's {op} cannot be captured: {reason}")
        a[...] = second
        graph.launch(stream)
        stream.synchronize()
        assert np.array_equal(result.get(), want)


def _abandon(stream):
    if stream.is_capturing():
        # The capture may be invalid already.
        with contextlib.suppress(cupy.cuda.runtime.CUDARuntimeError):
            stream.end_capture()


def test_backend_device_is_cached_and_quick():
    a = cupy.zeros((2, 2))
    device = backend.device(a)
    assert device.key == f"sm_{cupy.cuda.Device().compute_capability}"
    assert (device.family, device.kind) == ("sm", "cupy")
    assert device.local_mem_bytes >= 48 << 10
    assert device.has_vendor
    start = time.perf_counter()
    for _ in range(10_000):
        assert backend.device(a) is device
    assert (time.perf_counter() - start) / 10_000 < 5e-6


def test_backend_fill_nan():
    x = cupy.ones((3, 2, 2), "F")
    info = cupy.asarray([0, 3, 0], "i4")
    backend.fill_nan(x, info)
    assert cupy.isnan(x[1]).all()
    assert (x[::2] == 1).all()
    assert backend.zeros_info(x).shape == (3,)
    assert isinstance(backend.to_host(x), np.ndarray)


def test_the_batched_eigensolver_is_found():
    assert cusolver.syev_routine() == "XsyevBatched"
