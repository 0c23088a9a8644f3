"""Scratch on real queues: statements 8, 89, 97, 101 and 180 of the specification."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from checks import assert_same_bits
from families import DTYPES, definite
from guards import GUARD_BYTES, fill, guarded_workspace
from interpreter import run_python
from libraries import CUPY

import batchlas
from batchlas._dispatch import backend_of
from batchlas._ops import potrf
from batchlas._runtime.lease import ALIGNMENT
from batchlas._runtime.sycl import why_no_queue
from batchlas._runtime.workspace import live_leases
from batchlas._select import ScopedPin

needs_kernels = pytest.mark.skipif(
    why_no_queue() is not None, reason=f"no kernels on the host: {why_no_queue()}"
)


def layout(allocate):
    return allocate((3, 5), "complex128"), allocate((7,), "int32")


def address(array):
    if isinstance(array, np.ndarray):
        return array.__array_interface__["data"][0]
    if hasattr(array, "__sycl_usm_array_interface__"):
        facts = array.__sycl_usm_array_interface__
        return facts["data"][0] + facts["offset"] * array.itemsize
    return array.data.ptr


def test_scratch_is_of_the_array_s_kind_and_aligned(library):
    """89: beside the data, in memory of its own queue or device."""
    a = library.asarray(np.ones((2, 2)))
    arena = backend_of(a).workspace(a)
    with arena.lease(layout) as (first, second):
        assert library.owns(first)
        assert (first.shape, first.dtype) == ((3, 5), np.complex128)
        assert (second.shape, second.dtype) == ((7,), np.int32)
        assert address(first) % ALIGNMENT == address(second) % ALIGNMENT == 0
        # Whole arrays: dpctl 0.17 can abort when it spreads a host scalar.
        first[...] = library.asarray(np.full((3, 5), 1 + 2j))
        second[...] = library.asarray(np.full(7, 3, np.int32))
        assert (library.to_host(first) == 1 + 2j).all()
        assert (library.to_host(second) == 3).all()
        assert len(arena.live) == 1
    assert arena.live == ()


def test_scratch_is_used_again(library):
    a = library.asarray(np.ones((2, 2)))
    arena = backend_of(a).workspace(a)
    with arena.lease(layout) as (first, _):
        place = address(first)
    del first, _
    with arena.lease(layout) as (first, _):
        assert address(first) == place


@needs_kernels
@pytest.mark.parametrize("batch", [1, 3, 7, 8, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_explain_states_what_the_call_borrows(library, dtype, batch):
    """8, 101: sizing and call ask selection and the layout the same questions."""
    if library == CUPY:
        pytest.skip("cuSOLVER's scratch is CuPy's")
    a = library.asarray(definite(batch, 5, 5, dtype=dtype))
    backend = backend_of(a)
    for choice in potrf.candidates(dtype, backend.kind):
        with ScopedPin("potrf", str(choice)), guarded_workspace() as sizes:
            stated = batchlas.explain("cholesky", a)
            batchlas.linalg.cholesky(a)
        assert sum(sizes) == stated.scratch_bytes
        assert f"scratch {stated.scratch_bytes} bytes" in str(stated)
        is_padded = choice.name == "lane" and stated.scratch_bytes > 0
        assert is_padded or choice.name != "lane" or batch >= choice.width


@needs_kernels
@pytest.mark.parametrize("dtype", DTYPES)
def test_no_kernel_relies_on_what_scratch_holds(library, dtype):
    """180: results are the same bits on poisoned scratch of the exact size."""
    if library == CUPY:
        pytest.skip("no native kernel on CUDA borrows")
    a = library.asarray(definite(3, 5, 5, dtype=dtype))
    for choice in potrf.candidates(dtype, backend_of(a).kind):
        with ScopedPin("potrf", str(choice)):
            found = library.to_host(batchlas.linalg.cholesky(a))
            with guarded_workspace():
                again = library.to_host(batchlas.linalg.cholesky(a))
        assert_same_bits(again, found)


def test_a_kernel_that_writes_too_far_is_caught(library):
    """What the two tests above rest on."""
    if library == CUPY:
        pytest.skip("CuPy's pool has no guards")
    a = library.asarray(np.ones((2, 2)))
    backend = backend_of(a)
    arena = backend.workspace(a)
    with guarded_workspace():
        lease = arena.lease(layout)
        lease.__enter__()
        loan = lease._loan
        far = arena.memory.array(
            loan.block, loan.start + loan.nbytes - GUARD_BYTES, (1,), np.dtype("uint8")
        )
        fill(far, 0)
        with pytest.raises(AssertionError, match="wrote beyond"):
            lease.release()


@needs_kernels
def test_a_failing_launch_gives_its_scratch_back(monkeypatch):
    from batchlas._kernels import lane

    def fail(*_arguments):
        raise KeyError

    monkeypatch.setattr(lane, "potrf", fail)
    with ScopedPin("potrf", "lane:width=8"), pytest.raises(KeyError):
        batchlas.linalg.cholesky(definite(3, 4, 4))
    assert live_leases() == ()


def test_no_queue_is_derived_inside_an_op():
    """97: queues are made in one place, so a wait for the array's queue is enough."""
    makers = set()
    root = Path(batchlas.__file__).parent
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
                ("SyclQueue", "cuda.Stream")
            ):
                makers.add(path.relative_to(root).as_posix())
    assert makers == {"_runtime/sycl.py"}


FAKE_CUPY = """
import sys, types
import numpy as np

class Pointer:
    def __init__(self, owner, offset=0):
        self.owner, self.offset = owner, offset
    def __add__(self, offset):
        return Pointer(self.owner, self.offset + offset)

class ndarray:
    def __init__(self, shape, dtype=float, memptr=None):
        dtype = np.dtype(dtype)
        if memptr is None:
            made.append(shape)
            self.host = np.empty(shape, dtype)
        else:
            self.host = np.ndarray(shape, dtype, memptr.owner, memptr.offset)
        self.data = Pointer(self.host)

made, freed = [], []
cupy = types.ModuleType("cupy")
cupy.ndarray = ndarray
cupy.empty = ndarray
cupy.get_default_memory_pool = lambda: types.SimpleNamespace(
    free_all_blocks=lambda: freed.append(True)
)
sys.modules["cupy"] = cupy
from batchlas._backends import cupy as backend
"""


def test_cupy_s_pool_has_the_same_interface():
    """89: a lease is one allocation of CuPy's pool, which knows streams and threads."""
    run_python(
        FAKE_CUPY
        + """
def layout(allocate):
    return allocate((3, 5), "complex128"), allocate((7,), "int32")

pool = backend.workspace(None)
lease = pool.lease(layout)
with lease as (first, second):
    assert made == [512]
    assert (first.host.shape, first.host.dtype) == ((3, 5), np.complex128)
    assert second.host.ctypes.data - first.host.ctypes.data == 256
    (report,) = pool.live
    assert "layout (512 bytes)" == report
assert pool.live == ()
try:
    lease.arrays
except RuntimeError:
    pool.trim()
assert freed == [True]
"""
    )
