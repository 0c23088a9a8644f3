"""Forks, pickles and the end of the interpreter.

Statements 66, 152 and 163 of the specification, and what users of multiprocessing and
joblib expect.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from calls import CALLS
from families import definite
from interpreter import ROOT, run_python

import batchlas
from batchlas import linalg
from batchlas._runtime.sycl import why_no_queue

STACK = definite(20, 3, 3)
FUNCTIONS = sorted(name for name in linalg.__all__ if name.islower())

can_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
needs_kernels = pytest.mark.skipif(
    why_no_queue() is not None, reason=f"no kernels on the host: {why_no_queue()}"
)

# A program whose child is forked where {before} has run; the child's status is its own.
FORK = """
import os, sys, threading, time, warnings
import numpy as np, batchlas
stack = np.tile(np.diag([1.0, 4, 9]), (50, 1, 1))
root = np.diag([1.0, 2, 3])
{before}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # fork beside threads
    child = os.fork()
if child == 0:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
{child}
    for warning in caught:
        print(warning.message)
    sys.stdout.flush()
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
CALL_TWICE = """
        for _ in range(2):
            assert (batchlas.linalg.cholesky(stack) == root).all()
"""


def forked(before, child=CALL_TWICE):
    return run_python(FORK.format(before=before, child=child)).stdout


@can_fork
@needs_kernels
@pytest.mark.parametrize("library", ["batchlas.linalg.cholesky(stack)", "import dpctl"])
def test_a_forked_child_says_once_that_it_has_no_kernels(library):
    """66: it cannot rebuild its queue, and says so; results are right."""
    (line,) = forked(library).splitlines()
    assert "does not work after" in line
    assert "LAPACK" in line
    assert "spawn" in line


@can_fork
@needs_kernels
def test_a_pinned_kernel_is_refused_in_a_forked_child():
    child = """
        try:
            with batchlas.scoped_env(BATCHLAS_POTRF_ROUTE="lane:width=8:ahead=0"):
                batchlas.linalg.cholesky(stack)
        except batchlas.exceptions.PinError as error:
            print("refused", error)
"""
    text = forked("import batchlas.exceptions\nbatchlas.linalg.cholesky(stack)", child)
    assert "refused" in text


@can_fork
@needs_kernels
def test_a_child_forked_before_the_first_call_has_kernels():
    child = (
        CALL_TWICE
        + """
        from batchlas._runtime.sycl import why_no_queue
        print(why_no_queue())
"""
    )
    assert forked("", child) == "None\n"


@can_fork
@needs_kernels
def test_arrays_of_the_parent_s_runtime_are_refused_in_a_forked_child():
    """dpnp itself would wait for ever for threads that do not exist."""
    pytest.importorskip("dpnp", reason="dpnp is not installed")
    child = """
        try:
            batchlas.linalg.cholesky(array)
        except RuntimeError as error:
            print(error)
"""
    text = forked("import dpnp\narray = dpnp.asarray(stack)", child)
    assert "does not work after" in text
    assert "spawn" in text


@can_fork
def test_locks_that_other_threads_held_are_free_in_a_forked_child():
    """A child in which one of them stayed locked would hang."""
    before = """
from batchlas._runtime import reuse, settings, sycl
from batchlas._select import store
batchlas.linalg.cholesky(stack)
def hold():
    with reuse._pool._lock, settings._state.lock, sycl.in_turn, store._state.lock:
        held.set()
        time.sleep(60)
held = threading.Event()
threading.Thread(target=hold, daemon=True).start()
held.wait()
"""
    child = """
        batchlas.reload_settings()
        store.swap_builtin(None)
        assert (batchlas.linalg.cholesky(stack) == root).all()
        from batchlas._runtime.reuse import SMALLEST_BYTES, reused_bytes
        for _ in range(2):
            reused_bytes(SMALLEST_BYTES)
        print("done")
"""
    assert forked(before, child).startswith("done")


@can_fork
def test_a_fork_while_scratch_is_lent_leaves_the_parent_s_alone():
    before = """
from batchlas._backends import numpy as backend
from batchlas._runtime.workspace import live_leases
lease = backend.workspace(stack).lease(lambda allocate: allocate((10,), "float64"))
lease.__enter__()[:] = 7
"""
    child = """
        assert live_leases() == ()
        assert (lease.arrays == 7).all()
        with backend.workspace(stack).lease(lambda a: a((10,), "float64")) as other:
            other[:] = 9
        assert (lease.arrays == 7).all()
        lease.release()
"""
    assert "Error" not in forked(before, child)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_pickled_by_their_names(name):
    function = vars(linalg)[name]
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_results_are_pickled_whole(call):
    found = call(STACK)
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is type(found)
    pairs = zip(again, found, strict=True)
    for first, second in pairs if isinstance(found, tuple) else [(again, found)]:
        np.testing.assert_array_equal(first, second)


def test_arrays_and_explanations_are_pickled():
    array = pickle.loads(pickle.dumps(batchlas.asarray(STACK)))
    assert type(array) is type(batchlas.asarray(STACK))
    told = batchlas.explain("eigh", STACK)
    assert pickle.loads(pickle.dumps(told)) == told


def test_replaced_functions_are_pickled_as_ours():
    """With install, numpy.linalg.eigh is batchlas' function and says so."""
    with batchlas.installed():
        text = pickle.dumps(np.linalg.eigh)
    assert pickle.loads(text) is linalg.eigh


METHODS = [m for m in multiprocessing.get_all_start_methods() if m != "fork"]


@pytest.mark.parametrize("method", METHODS)
def test_multiprocessing_gives_the_same_results(method, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    parts = np.array_split(STACK, 4)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.map(linalg.eigh, parts)
    expected = linalg.eigh(STACK)
    values = np.concatenate([each.eigenvalues for each in found])
    np.testing.assert_array_equal(values, expected.eigenvalues)


@can_fork
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_multiprocessing_by_fork_gives_the_same_results():
    linalg.cholesky(STACK)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.map(quiet_cholesky, np.array_split(STACK, 4))
    np.testing.assert_allclose(
        np.concatenate(found), linalg.cholesky(STACK), rtol=1e-13
    )


def quiet_cholesky(stack):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there are no kernels; tested above
        return linalg.cholesky(stack)


@pytest.mark.parametrize("method", METHODS)
def test_an_error_comes_back_from_a_process_with_its_indices(method, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    bad = STACK.copy()
    bad[7] = -bad[7]
    with (
        multiprocessing.get_context(method).Pool(1) as pool,
        pytest.raises(batchlas.LinAlgError) as caught,
    ):
        pool.map(linalg.cholesky, [bad])
    assert caught.value.indices == ((7,),)
    assert caught.value.info[7] > 0


def test_joblib_gives_the_same_results(monkeypatch):
    joblib = pytest.importorskip("joblib", reason="joblib is not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    call = joblib.delayed(linalg.svd)
    found = joblib.Parallel(n_jobs=2)(call(part) for part in np.array_split(STACK, 4))
    values = np.concatenate([each.S for each in found])
    np.testing.assert_array_equal(values, linalg.svd(STACK).S)


EVERYTHING = """
import numpy as np, batchlas
from batchlas._backends import numpy as backend
stack = np.tile(np.diag([1.0, 4, 9]), (300, 1, 1))
def work():
    for function in (batchlas.linalg.cholesky, batchlas.linalg.eigh):
        for family in ("vendor", "threads"):
            with batchlas.scoped_env(
                BATCHLAS_POTRF_ROUTE=family, BATCHLAS_SYEV_ROUTE=family
            ):
                function(stack)
    assert (batchlas.linalg.cholesky(stack)[0] == np.diag([1, 2, 3])).all()
    with backend.workspace(stack).lease(lambda a: a((1000,), "float64")) as scratch:
        scratch[:] = 0
work()
"""
ENDINGS = {
    "plain": "",
    "at exit": "import atexit\natexit.register(work)",
    "in a destructor": """
class Last:
    def __del__(self):
        work()
last = Last()
""",
    "beside a daemon thread": """
import threading
threading.Thread(
    target=lambda: [batchlas.linalg.eigh(stack) for _ in iter(int, 1)], daemon=True
).start()
""",
    "with a live lease": """
lease = backend.workspace(stack).lease(lambda a: a((1000,), "float64"))
lease.__enter__()
""",
    "with dpnp": """
try:
    import dpnp
except ImportError:
    pass
else:
    batchlas.linalg.eigh(dpnp.asarray(stack))
""",
    "installed": "batchlas.install()\nnp.linalg.eigh(stack)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends_quietly(ending):
    """163: whatever still runs or is still held when it ends."""
    done = run_python(EVERYTHING + ENDINGS[ending])
    assert done.stderr == ""


def test_a_process_that_is_killed_leaves_no_process_behind():
    """Threads of ours do not keep a program alive that ends by an error."""
    done = subprocess.run(
        [sys.executable, "-c", EVERYTHING + "raise SystemExit(3)"],
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=60,
    )
    assert done.returncode == 3
