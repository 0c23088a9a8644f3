"""Every native CUDA family on a real GPU, pinned: results, batches, streams, limits."""

from __future__ import annotations

import numpy as np
import pytest
import stacks

if stacks.gpu_missing():
    pytest.skip(stacks.gpu_missing(), allow_module_level=True)

import cupy
from checks import assert_cholesky, assert_eigh, assert_svd, assert_values
from families import DEFINITE, GENERAL, HERMITIAN, mixed

import batchlas
from batchlas import linalg
from batchlas._backends import cupy as backend
from batchlas._ops import SPECS
from batchlas._select import ScopedPin
from batchlas.exceptions import PinError
from batchlas.tune.problems import PROBLEMS

pytestmark = pytest.mark.gpu

ORDERS = (1, 2, 5, 8, 16, 33, 66)
SHAPES = ((1, 1), (1, 7), (4, 4), (9, 3), (5, 12), (24, 24), (40, 33), (20, 66))
BATCHES = (65535, 65536, 65537, 3_000_000)
OF = {spec.op: spec for spec in SPECS}
ABSENT = {"uplo": "L", "jobz": "V", "vec": "all", "batch": 64}


def choices(op, dtype, **sizes):
    """Return the spellings of an op's native candidates that can run a shape."""
    spec = OF[op]
    device = backend.device(cupy.zeros(1))
    keys = {**ABSENT, **sizes, "dtype": dtype, "array": "cupy"}
    call = PROBLEMS[op].call(**{key: keys[key] for key in spec.keys})
    found = [c for c in spec.candidates(dtype, "cupy") if spec.can_run(c, call, device)]
    return [str(c) for c in found if c.name != "vendor"]


def poison():
    """Leave memory in CuPy's pool that would show where it is not written."""
    cupy.full(1 << 22, 1e30)


@pytest.mark.parametrize("upper", [False, True], ids=["L", "U"])
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("n", ORDERS)
def test_potrf(n, char, upper):
    a = np.concatenate([mixed(DEFINITE, n, char)] * 12)
    found = choices("potrf", np.dtype(char).name, n=n)
    assert found
    for choice in found:
        poison()
        with ScopedPin("potrf", choice):
            factor = linalg.cholesky(cupy.asarray(a), upper=upper)
        assert_cholesky(a, factor.get(), upper=upper)


@pytest.mark.parametrize("uplo", "LU")
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("n", ORDERS)
def test_syev(n, char, uplo):
    a = np.concatenate([mixed(HERMITIAN, n, char)] * 6)
    for choice in choices("syev", np.dtype(char).name, n=n):
        poison()
        with ScopedPin("syev", choice):
            w, v = linalg.eigh(cupy.asarray(a), uplo)
            values = linalg.eigvalsh(cupy.asarray(a), uplo)
        assert_eigh(a, w.get(), v.get(), uplo=uplo)
        assert_values(a, values.get(), w.get())


@pytest.mark.parametrize("full", [False, True], ids=["thin", "full"])
@pytest.mark.parametrize("char", "fdFD")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gesvd(shape, char, full):
    m, n = shape
    a = np.concatenate([mixed(GENERAL, n, char, m=m)] * 6)
    for choice in choices("gesvd", np.dtype(char).name, m=m, n=n):
        poison()
        with ScopedPin("gesvd", choice):
            u, s, vh = linalg.svd(cupy.asarray(a), full_matrices=full)
            values = linalg.svdvals(cupy.asarray(a))
        assert_svd(a, u.get(), s.get(), vh.get())
        assert_values(a, values.get(), s.get())


@pytest.mark.parametrize("batch", BATCHES)
def test_batches_beyond_a_grid_axis(batch):
    g = cupy.random.default_rng(1).standard_normal((batch, 3, 3), dtype="f")
    h = g + g.swapaxes(1, 2)
    p = g @ g.swapaxes(1, 2) + 3 * cupy.eye(3, dtype="f")
    for choice in choices("potrf", "float32", n=3):
        with ScopedPin("potrf", choice):
            factor, info = linalg.cholesky_ex(p)
        assert not bool(info.any())
        assert_close(factor @ factor.swapaxes(1, 2), p)
    for choice in choices("syev", "float32", n=3):
        with ScopedPin("syev", choice):
            w, v, info = linalg.eigh_ex(h)
        assert not bool(info.any())
        assert_close(h @ v, v * w[:, None, :])
    for choice in choices("gesvd", "float32", m=3, n=3):
        with ScopedPin("gesvd", choice):
            u, s, vh, info = linalg.svd_ex(g)
        assert not bool(info.any())
        assert_close(u * s[:, None, :] @ vh, g)


def assert_close(found, expected):
    """Check on the device, without copying millions of matrices."""
    error = cupy.abs(found - expected).max((1, 2))
    size = cupy.maximum(cupy.abs(expected).max((1, 2)), 1)
    assert bool((error <= 1e-4 * size).all())


@pytest.mark.slow
def test_more_than_2_to_31_elements():
    if cupy.cuda.runtime.memGetInfo()[0] < 64 << 30:
        pytest.skip("needs 64 GiB of free GPU memory")
    batch = (1 << 29) + 3
    one = cupy.asarray(np.array([[4, 2], [2, 5]], "f"))
    a = cupy.broadcast_to(one, (batch, 2, 2))
    with ScopedPin("potrf", "tiny"):
        factor, info = linalg.cholesky_ex(a)
    assert int(cupy.count_nonzero(info)) == 0
    assert bool((factor[-70_000:] == factor[0]).all())
    del factor, info
    with ScopedPin("syev", "jacobi"):
        w, v, _ = linalg.eigh_ex(a)
    assert bool((w[-70_000:] == w[0]).all())
    assert_eigh(one.get(), w[-1].get(), v[-1].get())
    del w, v
    cupy.get_default_memory_pool().free_all_blocks()


CAPTURED = {
    "cta": ("potrf", linalg.cholesky_ex),
    "tridiagonal": ("syev", linalg.eigh_ex),
    "bidiagonal": ("gesvd", linalg.svd_ex),
}


@pytest.mark.parametrize("choice", CAPTURED)
def test_graph_capture(choice):
    op, call = CAPTURED[choice]
    x = cupy.asarray(np.stack([np.eye(40) * 3 + np.ones((40, 40))] * 16))
    y = x * 4
    with ScopedPin(op, choice):
        want = call(y)[0].get()
        stream = cupy.cuda.Stream(non_blocking=True)
        with stream:
            a = x.copy()
            for _ in range(3):
                call(a)  # the pool must not allocate during the capture
            stream.synchronize()
            stream.begin_capture()
            result = call(a)
            graph = stream.end_capture()
            a[...] = y
            graph.launch(stream)
            stream.synchronize()
            assert np.array_equal(result[0].get(), want)


@pytest.mark.parametrize(
    ("op", "choice", "n"), [("potrf", "tiny", 40), ("syev", "jacobi", 9)]
)
def test_a_family_beyond_its_limits_is_refused(op, choice, n):
    a = cupy.eye(n)[None]
    call = linalg.cholesky if op == "potrf" else linalg.eigh
    with ScopedPin(op, choice), pytest.raises(PinError, match=choice):
        call(a)


def test_a_result_does_not_depend_on_its_place():
    a = mixed(HERMITIAN, 12, "f")
    alone = [linalg.eigh(cupy.asarray(each[None]))[0].get()[0] for each in a]
    with batchlas.errstate(linalg="ignore"):
        together = linalg.eigh(cupy.asarray(np.concatenate([a] * 9)))[0].get()
    assert np.array_equal(together[-len(a) :], np.stack(alone))
