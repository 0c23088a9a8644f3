"""The family ``threads``: limits that are honoured and restored, and forks."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import threadpoolctl
from families import definite
from interpreter import run_python

import batchlas
from batchlas import linalg
from batchlas._vendor import slices

PIN = {f"BATCHLAS_{op}_ROUTE": "threads" for op in ("POTRF", "SYEV", "GESVD")}


def blas_limits():
    """Return the limits of NumPy's own BLAS; others may be loaded beside it."""
    found = threadpoolctl.threadpool_info()
    return [
        each["num_threads"]
        for each in found
        if each["user_api"] == "blas" and "numpy" in each["filepath"]
    ]


@pytest.fixture(autouse=True)
def _numpys_blas_is_known():
    if not blas_limits():
        pytest.skip("NumPy's BLAS does not come in NumPy's wheel here")


@pytest.fixture
def seen(monkeypatch):
    """Record, for every slice that runs, its thread and BLAS's limit meanwhile."""
    from batchlas._vendor import lapack

    records = []
    run_slice = lapack._slice

    def recorded(*arguments):
        records.append((threading.get_ident(), tuple(blas_limits())))
        time.sleep(0.005)  # or one thread might do all before the others wake
        return run_slice(*arguments)

    monkeypatch.setattr(lapack, "_slice", recorded)
    return records


@pytest.fixture
def _four_processors(monkeypatch):
    """Let thread counts be seen on any machine: BLAS and the process may use four."""
    monkeypatch.setattr(slices, "processors", lambda: 4)
    slices._pool.cache_clear()
    with threadpoolctl.threadpool_limits(4, user_api="blas"):
        yield
    slices._pool.cache_clear()


@pytest.mark.usefixtures("_four_processors")
def test_slices_run_in_several_threads_with_one_blas_thread_each(seen):
    with batchlas.scoped_env(**PIN):
        linalg.eigh(definite(400, 16, 16))
    assert len({thread for thread, _ in seen}) > 1
    assert len(seen) == 16
    assert all(set(limits) == {1} for _, limits in seen)
    assert set(blas_limits()) == {4}


@pytest.mark.usefixtures("_four_processors")
def test_a_limit_of_threadpoolctl_is_honoured(seen):
    with batchlas.scoped_env(**PIN), threadpoolctl.threadpool_limits(1):
        assert slices.thread_count() == 1
        linalg.eigh(definite(400, 8, 8))
    assert [thread for thread, _ in seen] == [threading.get_ident()]


@pytest.mark.usefixtures("_four_processors")
@pytest.mark.parametrize(("text", "count"), [("1", 1), ("2", 2), ("3", 3), ("64", 4)])
def test_num_threads_is_honoured(text, count, seen):
    with batchlas.scoped_env(**PIN, BATCHLAS_NUM_THREADS=text):
        assert slices.thread_count() == count
        linalg.eigh(definite(400, 8, 8))
    assert len({thread for thread, _ in seen}) <= count


@pytest.mark.parametrize(
    "variable", ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "BATCHLAS_NUM_THREADS"]
)
def test_a_variable_that_limits_threads_is_honoured(variable):
    done = run_python(
        """
        from batchlas._vendor import slices
        print(slices.thread_count())
        """,
        **{variable: "1"},
    )
    assert done.stdout == "1\n"


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="no processor affinity on this system"
)
def test_the_processors_of_the_process_are_honoured():
    done = run_python(
        """
        import os
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        from batchlas._vendor import slices
        print(slices.thread_count())
        """
    )
    assert done.stdout == "1\n"


@pytest.mark.usefixtures("_four_processors")
def test_limits_come_back_after_concurrent_calls():
    """The last call to end restores what the first one found."""
    stack = definite(64, 8, 8)
    with batchlas.scoped_env(**PIN), ThreadPoolExecutor(8) as pool:
        expected = linalg.eigvalsh(stack)
        for found in pool.map(lambda _: linalg.eigvalsh(stack), range(64)):
            np.testing.assert_array_equal(found, expected)
    assert set(blas_limits()) == {4}


@pytest.mark.usefixtures("_four_processors")
def test_limits_come_back_after_a_call_within_a_call(monkeypatch):
    """The inner call finds BLAS held to one thread, which is no limit to restore."""
    from batchlas._vendor import lapack

    run_slice, stack, inner = lapack._slice, definite(40, 4, 4), []

    def nesting(*arguments):
        if not inner:
            inner.append(True)
            linalg.eigvalsh(stack)
        return run_slice(*arguments)

    monkeypatch.setattr(lapack, "_slice", nesting)
    with batchlas.scoped_env(**PIN):
        linalg.eigvalsh(stack)
    assert set(blas_limits()) == {4}


@pytest.mark.usefixtures("_four_processors")
def test_limits_come_back_after_an_error(monkeypatch):
    from batchlas._vendor import lapack

    def broken(*_arguments):
        message = "a slice failed"
        raise MemoryError(message)

    monkeypatch.setattr(lapack, "_slice", broken)
    with batchlas.scoped_env(**PIN), pytest.raises(MemoryError, match="a slice failed"):
        linalg.eigh(definite(400, 8, 8))
    assert set(blas_limits()) == {4}


@pytest.mark.usefixtures("_four_processors")
def test_an_error_in_another_thread_is_raised_here(monkeypatch):
    from batchlas._vendor import lapack

    run_slice, here = lapack._slice, threading.get_ident()
    started = threading.Event()

    def broken_elsewhere(*arguments):
        if threading.get_ident() != here:
            started.set()
            message = "another thread failed"
            raise MemoryError(message)
        started.wait(30)
        return run_slice(*arguments)

    monkeypatch.setattr(lapack, "_slice", broken_elsewhere)
    with batchlas.scoped_env(**PIN), pytest.raises(MemoryError, match="another thread"):
        linalg.eigh(definite(400, 8, 8))


def test_threads_call_threads():
    """More callers than processors, all of them waiting for the one pool."""
    stack = definite(40, 6, 6)
    with batchlas.scoped_env(**PIN):
        expected = linalg.svdvals(stack)
        with ThreadPoolExecutor(16) as pool:
            found = list(pool.map(lambda _: linalg.svdvals(stack), range(50)))
    for each in found:
        np.testing.assert_array_equal(each, expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_fork_works_afterwards():
    done = run_python(
        """
        import os, sys, warnings
        import numpy as np, batchlas
        warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
        stack = np.tile(np.diag([1.0, 2, 3]), (100, 1, 1))
        batchlas.linalg.eigh(stack)
        child = os.fork()
        if child == 0:
            w = batchlas.linalg.eigh(stack)[0]
            os._exit(0 if (w == [1, 2, 3]).all() else 1)
        _, status = os.waitpid(child, 0)
        sys.exit(os.waitstatus_to_exitcode(status))
        """,
        **PIN,
    )
    assert done.returncode == 0
