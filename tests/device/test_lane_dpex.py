"""The family lane by numba-dpex, in the environment that has it, and who renders it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import batchlas
from batchlas._backends import borrowed
from batchlas._kernels import lane_dpex
from batchlas._kernels.renderer_choice import renderer_for
from batchlas._runtime.settings import settings

dpnp = pytest.importorskip("dpnp", reason="dpnp is not installed")
pytest.importorskip("numba_dpex", reason="numba-dpex is not installed")

from batchlas._backends import dpnp as backend  # noqa: E402 - it imports dpnp
from batchlas._backends import numpy as host  # noqa: E402 - beside the other one

pytestmark = pytest.mark.filterwarnings("ignore")  # of numba-dpex, when it compiles
WIDTH = 4
BOUND = 50  # times n * eps, on matrices of condition about 10
# Each kernel takes seconds to compile: all orders in one dtype, few in the others.
CASES = [
    *((n, "float64", "L", 8) for n in (1, 2, 3, 4, 5, 8, 9, 16, 32)),
    *((n, "float64", "U", 4) for n in (4, 10)),
    *((n, "float32", "U", 16) for n in (2, 8, 16)),
    *((n, "float32", "L", 8) for n in (4, 8)),
    *((n, "complex64", "L", 8) for n in (3, 9)),
    *((n, "complex128", "U", 4) for n in (1, 4, 9)),
]
THREADED_CASES = [
    *((n, "float64", "L", WIDTH) for n in (1, 3, 8, 9)),
    *((n, "float32", "U", WIDTH) for n in (2, 16)),
    (4, "complex128", "U", WIDTH),
    (9, "complex64", "L", WIDTH),
]


def device_of(a, *, threaded):
    """The device of an array, or one that would get the kernels for GPUs."""
    device = backend.device(a)
    return replace(device, family="intel", is_gpu=True) if threaded else device


def stack_of(batch, n, dtype):
    rng = np.random.default_rng(n)
    b = rng.standard_normal((batch, n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        b = b + np.dtype(dtype).type(1j) * rng.standard_normal(b.shape).astype(dtype)
    return (b @ b.swapaxes(-1, -2).conj() + 2 * n * np.eye(n)).astype(dtype)


def other_triangle(n, uplo):
    return np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)


def factored(stack, uplo, width, *, threaded):
    """Launch on parts of longer arrays; return factor and info on the host."""
    batch = len(stack)
    longer = dpnp.asarray(np.concatenate([stack[:1], stack]))
    a = longer[1:]
    factors = dpnp.full((batch + 1, *a.shape[1:]), 7, dtype=a.dtype)
    infos = dpnp.full(batch + 1, -1, dtype=np.int32)
    factor, info = factors[:batch], infos[:batch]
    device = device_of(a, threaded=threaded)
    layout = lane_dpex.potrf_scratch(*a.shape[:2], a.dtype.name, width, device)
    with borrowed(backend, a, layout) as scratch:
        lane_dpex.potrf((a, factor, info), uplo, width, device, scratch)
    np.testing.assert_array_equal(dpnp.asnumpy(longer)[1:], stack)
    assert (dpnp.asnumpy(factors)[batch] == 7).all()
    assert dpnp.asnumpy(infos)[batch] == -1
    return dpnp.asnumpy(factor), dpnp.asnumpy(info)


def assert_factor(got, stack, uplo):
    n, low = stack.shape[-1], got if uplo == "L" else got.swapaxes(-1, -2).conj()
    residual = np.abs(low @ low.swapaxes(-1, -2).conj() - stack).max()
    assert residual <= BOUND * n * np.finfo(stack.dtype).eps * np.abs(stack).max()
    rows, columns = other_triangle(n, uplo)
    assert not got[:, rows, columns].any()


def assert_factors(n, dtype, uplo, width, *, together, threaded):
    """Factor batches around the number of matrices that are factored together."""
    batches = (1, together - 1, together, together + 1, 3 * together + 2)
    rows, columns = other_triangle(n, uplo)
    whole = stack_of(max(batches), n, dtype)
    for batch in batches:
        poisoned = whole[:batch].copy()
        poisoned[:, rows, columns] = np.nan
        got, info = factored(poisoned, uplo, width, threaded=threaded)
        assert_factor(got, whole[:batch], uplo)
        np.testing.assert_array_equal(info, 0)


@pytest.mark.parametrize(("n", "dtype", "uplo", "width"), CASES)
def test_vectors_factor_every_batch(n, dtype, uplo, width):
    assert_factors(n, dtype, uplo, width, together=width, threaded=False)


@pytest.mark.parametrize(("n", "dtype", "uplo", "width"), THREADED_CASES)
def test_threads_factor_every_batch(n, dtype, uplo, width):
    assert_factors(n, dtype, uplo, width, together=4 * width, threaded=True)


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize("n", [2, 5, 9])
def test_a_bad_minor_is_numbered_and_its_neighbours_do_not_change(n, threaded):
    together = 4 * WIDTH
    stack = stack_of(together + 3, n, "float64")
    want, _ = factored(stack, "L", WIDTH, threaded=threaded)
    for bad in (-1.0, 0.0, np.nan, np.inf):
        for which, minor in ((0, 1), (together - 1, n), (together + 2, n)):
            spoilt = stack.copy()
            spoilt[which, minor - 1, minor - 1] = bad
            got, info = factored(spoilt, "L", WIDTH, threaded=threaded)
            others = np.arange(len(stack)) != which
            assert info[which] == minor
            np.testing.assert_array_equal(info[others], 0)
            np.testing.assert_array_equal(got[others], want[others])


def test_a_small_batch_numbers_its_bad_minors():
    stack = stack_of(3, 5, "float64")
    stack[1, 2, 2] = -1
    stack[2, 4, 4] = np.nan
    _, info = factored(stack, "L", 8, threaded=False)
    np.testing.assert_array_equal(info, [0, 3, 5])


def test_the_public_call_factors_and_raises(monkeypatch):
    monkeypatch.setattr(lane_dpex, "potrf", counted(lane_dpex.potrf, calls := []))
    stack = stack_of(20, 2, "float64").reshape(4, 5, 2, 2)
    with batchlas.scoped_env(BATCHLAS_POTRF_ROUTE=f"lane:width={WIDTH}:ahead=0"):
        got = dpnp.asnumpy(batchlas.linalg.cholesky(dpnp.asarray(stack)))
        np.testing.assert_allclose(got, np.linalg.cholesky(stack), rtol=1e-12)
        stack[1, 2] = -np.eye(2)
        with pytest.raises(np.linalg.LinAlgError, match=r"\(1, 2\)|1, 2|7"):
            batchlas.linalg.cholesky(dpnp.asarray(stack))
    assert len(calls) == 2


def counted(function, calls):
    def call(*args):
        calls.append(args)
        return function(*args)

    return call


def test_what_exceeds_a_group_is_refused():
    a = dpnp.zeros((4, 64, 64), dtype=np.float64)
    device = device_of(a, threaded=True)
    most = device.local_mem_bytes
    assert lane_dpex.fits(8, "float64", most // 1024, device)
    assert not lane_dpex.fits(8, "float64", most // 512, device)  # nothing to spare
    assert not lane_dpex.fits(1, "float32", 2 * device.max_work_group, device)
    if not lane_dpex.fits(64, "float64", 64, device):
        with pytest.raises(ValueError, match="together"):
            lane_dpex.potrf((a, a, a), "L", 64, device, ())


def test_what_exceeds_private_memory_is_refused():
    a = dpnp.zeros((8, 132, 132), dtype=np.float64)
    device = device_of(a, threaded=False)
    assert lane_dpex.fits(128, "float64", 8, device)
    assert not lane_dpex.fits(132, "float64", 8, device)
    with pytest.raises(ValueError, match="together"):
        lane_dpex.potrf((a, a, a), "L", 8, device, ())
    single = replace(device, has_fp64=False)
    assert lane_dpex.fits(8, "complex64", 8, single)
    assert not lane_dpex.fits(8, "complex128", 8, single)


def test_dpnp_arrays_take_numba_dpex_and_numpy_arrays_opencl():
    assert settings().sycl_renderer == "auto"
    assert str(renderer_for(backend.device(dpnp.empty(0)))) == "dpex"
    assert str(renderer_for(host.device(np.empty(0)))) == "opencl"


@pytest.mark.parametrize(
    ("asked", "line"), [("auto", "by dpex"), ("dpex", "by dpex"), ("opencl", "")]
)
def test_the_setting_overrides_and_both_agree(capsys, asked, line):
    stack = stack_of(37, 4, "float64")
    with batchlas.scoped_env(
        BATCHLAS_SYCL_RENDERER=asked,
        BATCHLAS_POTRF_ROUTE=f"lane:width={WIDTH}:ahead=0",
        BATCHLAS_SELECT_TRACE="1",
    ):
        got = dpnp.asnumpy(batchlas.linalg.cholesky(dpnp.asarray(stack)))
    assert_factor(got, stack, "L")
    said = capsys.readouterr().err
    assert "-> lane:width=4:ahead=0" in said
    assert line in said
    assert ("by" in said) == bool(line)


def test_a_numpy_array_falls_to_opencl_and_the_trace_says_so(capsys):
    with batchlas.scoped_env(
        BATCHLAS_SYCL_RENDERER="dpex",
        BATCHLAS_POTRF_ROUTE=f"lane:width={WIDTH}:ahead=0",
        BATCHLAS_SELECT_TRACE="1",
    ):
        batchlas.linalg.cholesky(stack_of(37, 4, "float64"))
    assert "by opencl: not dpex, it takes dpnp arrays only" in capsys.readouterr().err
