"""One thread at a time is in the SYCL runtime, and holds up nothing else."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations_with_replacement

import numpy as np
import pytest
from calls import CALLS
from families import definite
from libraries import DPNP, NUMPY
from pending import Busy

import batchlas
from batchlas import linalg
from batchlas._kernels import compile as compiling
from batchlas._runtime.sycl import host_queue, in_turn
from batchlas._select import StrictPin

dpnp = pytest.importorskip("dpnp")
dpctl = pytest.importorskip("dpctl")

from batchlas._backends import dpnp as backend  # noqa: E402 - imports dpnp
from batchlas._vendor import onemkl  # noqa: E402 - imports dpnp

PATIENCE = 20  # seconds, for what would never come
STACK = definite(40, 3, 3)


class Runtime:
    """Watches functions that use the runtime: how many threads are in them at once."""

    def __init__(self):
        self.inside, self.most, self.names = [], 0, set()

    def watched(self, name, function):
        def visit(*arguments, **options):
            self.names.add(name)
            self.inside.append(threading.get_ident())
            self.most = max(self.most, len(set(self.inside)))
            time.sleep(0.01)
            try:
                return function(*arguments, **options)
            finally:
                self.inside.remove(threading.get_ident())

        return visit


@pytest.fixture
def runtime(monkeypatch):
    watch = Runtime()
    for module, name in (
        (onemkl, "cholesky"),
        (backend, "empty"),
        (compiling, "trace_launch"),
    ):
        monkeypatch.setattr(module, name, watch.watched(name, getattr(module, name)))
    return watch


def factored(pin, array):
    with StrictPin("potrf", pin):
        linalg.cholesky(array)


class Pending:
    """A queue whose work takes a while."""

    is_in_order = False

    def __init__(self, runtime):
        self.wait = runtime.watched("wait", lambda: None)


LANE = f"lane:width={32 // STACK.itemsize}:ahead=0"
USES = {
    "oneMKL": ("cholesky", lambda _: factored("vendor", dpnp.asarray(STACK))),
    "a kernel": ("empty", lambda _: factored(LANE, dpnp.asarray(STACK))),
    "a kernel on NumPy": ("trace_launch", lambda _: factored(LANE, STACK)),
    "scratch": ("wait", lambda runtime: backend.UsmMemory(Pending(runtime)).wait()),
}

PAIRS = list(combinations_with_replacement(USES, 2))


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_one_thread_at_a_time_is_in_the_runtime(pair, runtime):
    if host_queue() is None:
        pytest.skip("no kernels for NumPy arrays here")
    gate = threading.Barrier(2)

    def work(use):
        gate.wait(PATIENCE)
        for _ in range(3):
            USES[use][1](runtime)

    with in_turn:  # what is made on first use
        for use in pair:
            USES[use][1](runtime)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, pair))
    assert {USES[use][0] for use in pair} <= runtime.names
    assert runtime.most == 1


@pytest.mark.parametrize("pin", ["vendor", "threads"])
def test_lapack_is_not_held_up_by_calls_on_dpnp_arrays(pin, monkeypatch):
    started, done, waited = threading.Event(), threading.Event(), []
    library = onemkl.cholesky

    def slow(*arguments, **options):
        started.set()
        waited.append(done.wait(PATIENCE))
        return library(*arguments, **options)

    monkeypatch.setattr(onemkl, "cholesky", slow)
    linalg.eigh(STACK)  # knows the device from here on
    other = threading.Thread(target=factored, args=("vendor", dpnp.asarray(STACK)))
    other.start()
    assert started.wait(PATIENCE)
    with StrictPin("syev", pin):
        linalg.eigh(STACK)
    with StrictPin("gesvd", pin):
        linalg.svd_ex(STACK)
    done.set()
    other.join()
    assert waited == [True]


@pytest.mark.parametrize("order", ["default", "in_order"])
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_nothing_is_pending_when_a_call_ends(call, order):
    queue = dpctl.SyclQueue(property=order)
    if not queue.sycl_device.is_cpu:
        pytest.skip("other devices than CPUs go on by themselves")
    array = dpnp.ones((0, 2, 2), sycl_queue=queue)
    queue.wait()
    busy = Busy(queue)
    call(array)
    assert not busy.is_pending


def test_the_turn_of_a_call_that_raises_ends():
    with pytest.raises(np.linalg.LinAlgError):
        linalg.cholesky(dpnp.asarray(-STACK))
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(linalg.cholesky, dpnp.asarray(STACK))
        other.result(PATIENCE)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_what_a_call_made_for_itself_ends_in_its_turn(call, monkeypatch):
    """Freeing USM memory is a use of the runtime, too."""
    ends = []

    class Watched(dpnp.ndarray):
        def __del__(self):
            ends.append(in_turn._lock._is_owned())

    def converted(a, dtype):
        good = dpnp.asarray(definite(3, 2, 2).astype(dtype))
        return Watched(a.shape, dtype=dtype, buffer=good.get_array())

    monkeypatch.setattr(dpnp.ndarray, "astype", converted)
    call(dpnp.ones((3, 2, 2), dtype=np.int64))
    assert ends == [True]


@pytest.mark.parametrize("library", [NUMPY, DPNP], ids=str)
def test_calls_may_be_made_in_a_turn(library):
    """A thread that holds the runtime, say in a destructor, may call batchlas."""
    with in_turn:
        (factor,) = library.answers(lambda a: (batchlas.linalg.cholesky(a),), STACK)
    np.testing.assert_allclose(factor @ factor.swapaxes(-1, -2), STACK)
