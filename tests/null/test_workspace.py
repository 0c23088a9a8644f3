"""The workspace arena: statements 89 to 104 of the runtime's specification.

Here with memory of the host and a queue that counts waits; on real queues in
``tests/device/test_workspaces.py``.
"""

from __future__ import annotations

import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from batchlas._runtime import workspace
from batchlas._runtime.lease import ALIGNMENT, Planned, measured_bytes
from batchlas._runtime.workspace import MOST_KEPT_BYTES, Arena, arena_of
from batchlas.exceptions import BatchlasWarning


class Memory:
    """Host memory that counts what an arena does with it."""

    def __init__(self, *, is_in_order=False):
        self.is_in_order = is_in_order
        self.allocated = []
        self.waits = 0

    def allocate(self, nbytes):
        self.allocated.append(nbytes)
        return np.empty(nbytes, np.uint8)

    def array(self, block, start, shape, dtype):
        return np.ndarray(shape, dtype, block, start)

    def wait(self):
        self.waits += 1


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def arena(memory):
    return Arena(memory)


def byte_layout(*sizes):
    return lambda allocate: [allocate((size,), "uint8") for size in sizes]


def address(array):
    return array.__array_interface__["data"][0]


def span(array):
    return address(array), address(array) + array.nbytes


def test_arrays_have_their_shapes_and_lie_apart(arena):
    """101: one uniform alignment, and no bytes shared."""

    def layout(allocate):
        return (
            allocate((3, 5), "complex128"),
            allocate((), "float32"),
            allocate((0, 4), "float64"),
            allocate((7,), np.int32),
        )

    with arena.lease(layout) as arrays:
        shapes = [(array.shape, array.dtype.name) for array in arrays]
        first = address(arrays[0])
        offsets = [address(array) - first for array in arrays]
    assert shapes == [
        ((3, 5), "complex128"),
        ((), "float32"),
        ((0, 4), "float64"),
        ((7,), "int32"),
    ]
    assert offsets == [0, ALIGNMENT, 2 * ALIGNMENT, 2 * ALIGNMENT]


def test_measuring_hands_out_no_memory():
    """101: sizing has stand-ins that cannot be read or written."""
    seen = []

    def layout(allocate):
        seen.append(allocate((2, 3), "float64"))

    assert measured_bytes(layout) == ALIGNMENT
    assert seen == [Planned((2, 3), np.dtype("float64"))]


def test_measuring_counts_every_array_at_its_rounded_size(arena):
    """101: the sum of rounded sizes, where a sum of sizes would be too small."""
    layout = byte_layout(1, ALIGNMENT + 1, 1)
    assert measured_bytes(layout) == 4 * ALIGNMENT
    with arena.lease(layout) as arrays:
        lo, hi = address(arrays[0]), address(arrays[-1]) + ALIGNMENT
    assert hi - lo == measured_bytes(layout)


@pytest.mark.parametrize("sizes", [(10, 1000), (1000, 10)])
def test_a_layout_that_changes_between_measuring_and_use_is_refused(arena, sizes):
    """101, 118: both ways; nothing stays lent."""
    turns = iter(sizes)

    def layout(allocate):
        return allocate((next(turns),), "uint8")

    with pytest.raises(RuntimeError, match="measured"), arena.lease(layout):
        pass
    assert arena.live == ()


def test_a_repeated_call_allocates_once(arena, memory):
    """91: released bytes are rewound and not freed."""
    for _ in range(5):
        with arena.lease(byte_layout(10_000, 20_000)) as (first, _):
            place = address(first)
        with arena.lease(byte_layout(30_000)) as (again,):
            assert address(again) == place
    assert len(memory.allocated) == 1


def test_a_live_lease_keeps_its_address_when_a_block_is_opened(arena, memory):
    """90: blocks are appended and never moved."""
    with arena.lease(byte_layout(1000)) as (first,):
        first[:] = 7
        with arena.lease(byte_layout(10**6)) as (second,):
            second[:] = 9
            assert (
                span(first)[1] <= span(second)[0] or span(second)[1] <= span(first)[0]
            )
        assert (first == 7).all()
    assert len(memory.allocated) == 2


def test_nested_leases_share_a_block_and_no_byte(arena, memory):
    with (
        arena.lease(byte_layout(1000)) as (first,),
        arena.lease(byte_layout(1000)) as (second,),
    ):
        assert span(first)[1] <= span(second)[0]
    assert len(memory.allocated) == 1


def test_a_return_out_of_order_keeps_bytes_until_the_leases_above_are_back(arena):
    """92: only the innermost live loan moves the cursor."""
    outer, inner = arena.lease(byte_layout(1000)), arena.lease(byte_layout(1000))
    (first,), (second,) = outer.__enter__(), inner.__enter__()
    outer.release()
    assert len(arena.live) == 1
    with arena.lease(byte_layout(1000)) as (third,):
        assert address(third) > address(second)
    inner.release()
    assert arena.live == ()
    with arena.lease(byte_layout(1000)) as (again,):
        assert address(again) == address(first)


def test_live_leases_are_named(arena):
    """93: whether something is out, and what."""

    def panels(allocate, count):
        return allocate((count,), "float64")

    assert arena.live == ()
    with arena.lease(partial(panels, count=32)):
        (report,) = arena.live
    assert "panels" in report
    assert "256 bytes" in report


def test_release_is_idempotent_and_arrays_end_with_it(arena):
    """94, 95: a second release is nothing, and a released lease has no arrays."""
    lease = arena.lease(byte_layout(8))
    with pytest.raises(RuntimeError, match="holds no memory"):
        _ = lease.arrays
    with lease as arrays:
        assert lease.arrays is arrays
    lease.release()
    with pytest.raises(RuntimeError, match="holds no memory"):
        _ = lease.arrays


def test_a_lease_of_a_dropped_arena_is_refused(memory):
    """95: what was borrowed from a temporary cannot be used."""
    lease = Arena(memory).lease(byte_layout(8))
    with pytest.raises(RuntimeError, match="needs its workspace"), lease:
        pass


def test_an_exception_gives_the_bytes_back(arena):
    with pytest.raises(KeyError), arena.lease(byte_layout(8)):
        raise KeyError
    assert arena.live == ()


def test_a_forgotten_lease_gives_its_bytes_back(arena):
    lease = arena.lease(byte_layout(8))
    lease.__enter__()
    assert len(arena.live) == 1
    del lease
    gc.collect()
    assert arena.live == ()


def test_out_of_order_queues_are_drained_by_what_reclaims():
    """96: a return under a live lease only marks; the one that frees bytes waits."""
    memory = Memory(is_in_order=False)
    arena = Arena(memory)
    outer, inner = arena.lease(byte_layout(8)), arena.lease(byte_layout(8))
    outer.__enter__()
    inner.__enter__()
    outer.release()
    assert memory.waits == 0
    inner.release()
    assert memory.waits == 1


def test_queues_in_order_are_not_waited_for():
    """96."""
    memory = Memory(is_in_order=True)
    arena = Arena(memory)
    with arena.lease(byte_layout(8)):
        pass
    assert memory.waits == 0


def test_a_queue_that_fails_does_not_fail_the_release(memory):
    """94: destructors release; the caller's next wait tells."""

    def wait():
        message = "the device is lost"
        raise RuntimeError(message)

    memory.wait = wait
    arena = Arena(memory)
    with arena.lease(byte_layout(8)):
        pass
    assert arena.live == ()


def test_trim_refuses_while_a_lease_is_out_and_says_which(arena):
    """98."""
    with (
        arena.lease(byte_layout(8)),
        pytest.raises(
            RuntimeError, match=r"1 leases are out: .*byte_layout.*256 bytes"
        ),
    ):
        arena.trim()


def test_trim_drains_before_it_frees(memory):
    """98: with in-order queues too, whose releases do not wait."""
    memory.is_in_order = True
    arena = Arena(memory)
    with arena.lease(byte_layout(8)):
        pass
    assert arena.held_bytes > 0
    arena.trim()
    assert memory.waits == 1
    assert arena.held_bytes == 0


def test_an_idle_arena_is_drained_before_it_goes(memory):
    """98."""
    memory.is_in_order = True
    arena = Arena(memory)
    with arena.lease(byte_layout(8)):
        pass
    del arena
    gc.collect()
    assert memory.waits == 1


def test_an_arena_dropped_with_a_live_lease_warns_and_keeps_the_memory(memory):
    """99: a caller's mistake is told, and never becomes a use after free."""
    arena = Arena(memory)
    lease = arena.lease(byte_layout(8))
    (array,) = lease.__enter__()
    with pytest.warns(BatchlasWarning, match="dropped while 1 leases are out"):
        del arena
    array[:] = 3
    lease.release()
    assert (array == 3).all()


def test_much_memory_is_not_kept(memory):
    arena = Arena(memory)
    with arena.lease(byte_layout(MOST_KEPT_BYTES + 1)):
        pass
    assert arena.held_bytes == 0
    with arena.lease(byte_layout(MOST_KEPT_BYTES)):
        pass
    assert arena.held_bytes == MOST_KEPT_BYTES


def test_a_growing_need_takes_few_blocks(arena, memory):
    for size in range(1000, 2**21, 1000):
        with arena.lease(byte_layout(size)):
            pass
    assert len(memory.allocated) < 10
    assert arena.held_bytes < 3 * 2**21


def in_another_thread(function):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_another_thread_may_not_borrow_or_trim(arena):
    """102: a clear error where bytes are handed out or freed."""

    def borrow():
        with arena.lease(byte_layout(8)):
            pass

    for use in (borrow, arena.trim):
        with pytest.raises(RuntimeError, match="belongs to another thread"):
            in_another_thread(use)


def test_hand_over_is_explicit(arena):
    """102."""

    def attached():
        arena.attach_to_current_thread()
        with arena.lease(byte_layout(8)):
            return len(arena.live)

    assert in_another_thread(attached) == 1
    with pytest.raises(RuntimeError, match="belongs to another thread"):
        arena.trim()
    arena.attach_to_current_thread()
    arena.trim()


def test_hand_over_waits_for_the_leases(arena):
    with (
        arena.lease(byte_layout(8)),
        pytest.raises(RuntimeError, match="cannot change hands: 1 leases are out"),
    ):
        in_another_thread(arena.attach_to_current_thread)


def test_another_thread_may_give_back(arena):
    """103: a release is exempt; the owner takes the bytes up when it borrows."""
    lease = arena.lease(byte_layout(8))
    (first,) = lease.__enter__()
    in_another_thread(lease.release)
    assert arena.live == ()
    with arena.lease(byte_layout(8)) as (again,):
        assert address(again) == address(first)


def test_a_thread_has_one_arena_per_queue():
    """100, 102: found by the queue itself, not by its address, and by thread."""
    first, second = ("queue", 1), ("queue", 2)
    mine = arena_of("host", first, host_memory)
    assert arena_of("host", ("queue", 1), host_memory) is mine  # an equal queue
    assert arena_of("host", second, host_memory) is not mine
    theirs = in_another_thread(lambda: arena_of("host", first, host_memory))
    assert theirs is not mine


def host_memory(_queue):
    return Memory()


def test_arenas_go_with_their_thread():
    made = []

    def borrow():
        arena = arena_of("host", threading.get_ident(), host_memory)
        with arena.lease(byte_layout(8)):
            made.append(arena.memory)

    thread = threading.Thread(target=borrow)
    thread.start()
    thread.join()
    gc.collect()
    assert made[0].waits > 1  # the release, then the end of the arena


def test_few_queues_are_kept():
    """A program that makes queue after queue does not collect their memory."""

    def many():
        for number in range(100):
            with arena_of("host", number, host_memory).lease(byte_layout(8)):
                pass
        return len(workspace._arenas.by_queue)

    assert in_another_thread(many) == workspace._MOST_ARENAS


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_starts_anew_and_waits_for_no_queue():
    """The parent's queues cannot finish anything in the child: a wait would hang."""
    arena = arena_of("host", "before the fork", host_memory)
    with arena.lease(byte_layout(8)):
        pass
    arena.memory.wait = os.abort
    arena.memory.is_in_order = True
    child = os.fork()
    if child == 0:
        fresh = arena_of("host", "before the fork", host_memory) is not arena
        del arena
        gc.collect()
        os._exit(0 if fresh else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    arena.memory.wait = lambda: None


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_arenas_of_threads_that_a_fork_ends_wait_for_no_queue():
    """In the child those threads are gone, and their arenas with them."""
    ready, done = threading.Event(), threading.Event()

    def hold():
        arena = arena_of("host", "of a thread", host_memory)
        with arena.lease(byte_layout(8)):
            pass
        arena.memory.wait = lambda: os._exit(3) if os.getpid() != parent else 0
        arena.memory.is_in_order = True
        del arena
        ready.set()
        done.wait(30)

    parent = os.getpid()
    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait(30)
    child = os.fork()
    if child == 0:
        gc.collect()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
