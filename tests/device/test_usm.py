"""Kept USM memory: used again only when nothing owns it any more, and bounded."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest
from families import definite
from interpreter import run_python
from pending import Busy

from batchlas import linalg

dpnp = pytest.importorskip("dpnp")
dpctl = pytest.importorskip("dpctl")

from batchlas._backends import dpnp as backend  # noqa: E402 - imports dpnp
from batchlas._runtime import usm  # noqa: E402
from batchlas._runtime.usm import (  # noqa: E402
    MOST_WATCHED,
    MOST_WATCHED_BYTES,
    SMALLEST_BYTES,
)


@pytest.fixture
def queue(monkeypatch):
    monkeypatch.setattr(usm, "_pool", usm._Pool())
    queue = dpctl.SyclQueue(dpctl.select_default_device())
    if not usm.is_kept(SMALLEST_BYTES, queue.sycl_device):
        pytest.skip("memory is kept on CPU devices, from dpctl 0.18 on")
    return queue


def empty(queue, nbytes=SMALLEST_BYTES, usm_type="device", dtype=np.uint8):
    like = dpnp.empty(1, sycl_queue=queue, usm_type=usm_type)
    kind = np.dtype(dtype)
    return backend.empty((nbytes // kind.itemsize,), kind, like)


def address(array):
    return backend.extent(array).address


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_memory_of_a_dropped_array_comes_again(queue, usm_type):
    first = empty(queue, usm_type=usm_type)
    kept = address(first)
    del first
    gc.collect()
    again = empty(queue, usm_type=usm_type)
    assert address(again) == kept
    assert (again.usm_type, again.sycl_queue) == (usm_type, queue)


def test_kept_memory_is_handed_out_once(queue):
    first = empty(queue)
    del first
    gc.collect()
    again, other = empty(queue), empty(queue)
    assert address(again) != address(other)


OWNERS = {
    "a view": lambda array: array[10:20],
    "a usm_ndarray": lambda array: array.get_array(),
    "the memory": lambda array: array.get_array().usm_data,
    # What work on a queue holds, too: no reference to the first memory object.
    "memory of the memory": lambda array: type(array.get_array().usm_data)(
        array.get_array().usm_data
    ),
}


@pytest.mark.parametrize("owner", OWNERS)
def test_memory_stays_with_whoever_owns_it(queue, owner):
    array = empty(queue)
    taken = address(array)
    kept = OWNERS[owner](array)
    del array
    gc.collect()
    other = empty(queue)
    assert address(other) != taken
    del kept
    gc.collect()
    assert address(empty(queue)) == taken


def test_memory_of_any_size_serves_any_dtype(queue):
    """dpnp copies whole blocks to the host, counted in elements of the array."""
    first = empty(queue, SMALLEST_BYTES + 36, dtype=np.float32)
    kept = address(first)
    del first
    gc.collect()
    again = empty(queue, SMALLEST_BYTES, dtype=np.complex128)
    assert address(again) == kept
    again[...] = 2
    assert (dpnp.asnumpy(again) == 2).all()


def test_memory_is_not_handed_to_another_queue_or_kind(queue):
    first = empty(queue)
    kept = address(first)
    del first
    gc.collect()
    assert address(empty(dpctl.SyclQueue(queue.sycl_device))) != kept
    assert address(empty(queue, usm_type="shared")) != kept
    assert address(empty(queue)) == kept


def test_much_larger_memory_is_not_handed_out(queue):
    large = empty(queue, 4 * SMALLEST_BYTES)
    kept = address(large)
    del large
    gc.collect()
    assert address(empty(queue)) != kept
    assert address(empty(queue, 4 * SMALLEST_BYTES)) == kept


def test_no_more_blocks_than_the_limit_are_kept(queue):
    arrays = [empty(queue) for _ in range(2 * MOST_WATCHED)]
    arrays.clear()
    assert 0 < len(usm._pool.blocks) <= MOST_WATCHED


def test_no_more_bytes_than_the_limit_are_kept(queue):
    arrays = [empty(queue, MOST_WATCHED_BYTES // 4) for _ in range(8)]
    arrays.clear()
    kept = sum(block.memory.nbytes for block in usm._pool.blocks)
    assert 0 < kept <= MOST_WATCHED_BYTES


def test_memory_that_is_not_watched_is_the_callers_alone(queue, monkeypatch):
    """Where owners cannot be counted, nothing is used again."""
    monkeypatch.setattr(usm, "_count", lambda _block: 1)
    first = empty(queue)
    assert usm._pool.blocks == []
    first[...] = 7
    assert address(empty(queue)) != address(first)


def test_small_memory_and_large_memory_begin_at_a_cache_line(queue):
    for nbytes in (SMALLEST_BYTES, 2**20 + 8, 2**22 + 8):
        assert address(empty(queue, nbytes)) % 64 == 0


@pytest.mark.parametrize("order", ["default", "in_order"])
def test_memory_that_pending_work_reads_is_not_handed_out(order, queue):
    queue = dpctl.SyclQueue(queue.sycl_device, property=order)
    array = empty(queue, dtype=np.float32)
    array[...] = 7
    taken = address(array)
    busy = Busy(queue, held=True)
    copy = dpnp.copy(array)
    del array
    gc.collect()
    other = empty(queue, dtype=np.float32)
    assert busy.is_pending
    busy.finish()  # dpnp waits for a queue before it tells an address
    assert address(other) != taken
    other[...] = 8
    assert (dpnp.asnumpy(copy) == 7).all()
    del other, copy
    assert taken in {address(each) for each in [empty(queue) for _ in range(3)]}


def test_memory_that_another_queue_still_reads_is_not_handed_out(queue):
    """Work on another queue owns what it reads, whether it is in order or not."""
    array = empty(queue, dtype=np.float32)
    array[...] = 7
    queue.wait()
    taken = address(array)
    elsewhere = dpctl.SyclQueue(queue.sycl_context, queue.sycl_device)
    busy = Busy(elsewhere, held=True)
    copy = dpnp.copy(dpnp.asarray(array).to_device(elsewhere))
    assert busy.is_pending
    del array
    gc.collect()
    assert address(empty(queue)) != taken
    busy.finish()
    assert (dpnp.asnumpy(copy) == 7).all()


def test_a_forked_child_with_kept_memory_ends():
    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    done = run_python(
        """
        import os
        import sys
        import numpy as np
        import batchlas
        import dpnp
        stack = dpnp.asarray(np.tile(np.eye(4), (5000, 1, 1)))
        batchlas.linalg.cholesky(stack)
        if child := os.fork():
            print("child ended:", os.waitpid(child, 0)[1])
        else:
            sys.exit(0)
        """
    )
    assert done.stdout == "child ended: 0\n"


@pytest.mark.timeout(60, method="thread")
def test_results_work_on_an_in_order_queue():
    """With memory of an owner that dpctl does not know, allclose never came back."""
    queue = dpctl.SyclQueue(property="in_order")
    stack = definite(500, 4, 4)
    array = dpnp.asarray(stack, sycl_queue=queue)
    for _ in range(10):
        factor = linalg.cholesky(array)
        product = factor @ dpnp.swapaxes(factor, -1, -2)
        assert bool(dpnp.allclose(product, array))
