"""The SVD kernels: what they compute, unscheduled and in vectors, and their texts."""

import numpy as np
import pytest

from batchlas._kernels import gesvd_orders, gesvd_shapes
from batchlas._kernels.driver import apply_asked
from batchlas._kernels.interpret import check_independence, run
from batchlas._kernels.kinds import DType
from batchlas._kernels.options import Split, Target
from batchlas._kernels.render import render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.singular import has_own_kernel, shape_of
from batchlas._kernels.target import CUDA, DPEX, OPENCL

BATCH = WIDTH = 2
METHODS = ("jacobi", "bidiagonal")


def stack_of(m, n, dtype):
    """Return a random matrix and one of rank 1 with an exact zero row."""
    rng = np.random.default_rng(m + n)
    a = rng.standard_normal((BATCH, m, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal((BATCH, m, n))
    a[1] = np.outer(np.arange(m), np.arange(1, n + 1))
    return a.astype(dtype)


def arrays(m, n, dtype, vectors):
    a = stack_of(m, n, dtype)
    k, real = min(m, n), a.real.dtype
    found = {
        "a": a.reshape(BATCH, -1),
        "s": np.full((BATCH, k), 7, real),
        "info": np.full(BATCH, -1, np.int32),
    }
    if vectors:
        found["u"] = np.full((BATCH, m * k), 7, dtype)
        found["vh"] = np.full((BATCH, k * n), 7, dtype)
    return found


def problem(method, m, n, dtype, *, vectors=True):
    """Return a kernel with all that a run of it takes."""
    data, scalars = arrays(m, n, dtype, vectors), {"nb": BATCH}
    if method == "orders":
        kernel = gesvd_orders.gesvd(n, DType(dtype), WIDTH, WIDTH, vectors=vectors)
        return kernel, data, scalars
    kernel = gesvd_shapes.gesvd(
        method, DType(dtype), WIDTH, vectors=vectors, wide=m < n
    )
    vec = "thin" if vectors else "none"
    sizes = shape_of(BATCH, (m, n), dtype, vec, WIDTH).scalars
    scalars |= dict(zip(("m", "n", "columns", "reals"), sizes, strict=True))
    memory = np.full((BATCH // WIDTH, sizes[-1], WIDTH), np.nan, data["s"].dtype)
    return kernel, {"scratch": memory, **data}, scalars


def vectors_of(kernel):
    k = Scheduler(kernel, OPENCL)
    k.convert_loop_to_global()
    batch = [axis.name for axis in k.rngs()].index("b")
    apply_asked(k, (Split(batch, WIDTH, Target.VECTOR),))
    return k.get_optimized_ast()


def check(data, m, n):
    a, k = data["a"].reshape(BATCH, m, n), min(m, n)
    assert data["info"].tolist() == [0, 0]
    tolerance = {"atol": 100 * np.finfo(a.dtype).eps * np.abs(a).sum()}
    s = data["s"]
    np.testing.assert_allclose(s, np.linalg.svd(a, compute_uv=False), **tolerance)
    assert (np.diff(s) <= 0).all()
    if "u" not in data:
        return
    u, vh = data["u"].reshape(BATCH, m, k), data["vh"].reshape(BATCH, k, n)
    np.testing.assert_allclose((u * s[:, None, :]) @ vh, a, **tolerance)
    for q in (u.swapaxes(-1, -2).conj() @ u, vh @ vh.swapaxes(-1, -2).conj()):
        np.testing.assert_allclose(q, np.broadcast_to(np.eye(k), q.shape), **tolerance)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_written_out_orders(n, dtype):
    kernel, data, scalars = problem("orders", n, n, dtype)
    fresh = {name: array.copy() for name, array in data.items()}
    for each, given in ((kernel, data), (vectors_of(kernel), fresh)):
        run(each, given, scalars)
        check(given, n, n)
    for name, array in data.items():
        np.testing.assert_array_equal(array, fresh[name])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (4, 4), (6, 3), (2, 5)])
def test_shapes(m, n, dtype, method):
    kernel, data, scalars = problem(method, m, n, dtype)
    fresh = {name: array.copy() for name, array in data.items()}
    for each, given in ((kernel, data), (vectors_of(kernel), fresh)):
        run(each, given, scalars)
        check(given, m, n)
    for name in ("s", "u", "vh", "info"):
        np.testing.assert_array_equal(data[name], fresh[name])


@pytest.mark.parametrize("method", [*METHODS, "orders"])
def test_values_alone(method):
    kernel, data, scalars = problem(method, 3, 3, "float64", vectors=False)
    run(vectors_of(kernel), data, scalars)
    check(data, 3, 3)


@pytest.mark.parametrize("method", [*METHODS, "orders"])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_matrices_are_independent(dtype, method):
    kernel, data, scalars = problem(method, 3, 3, dtype)
    check_independence(kernel, data, scalars)


@pytest.mark.parametrize("method", [*METHODS, "orders"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_told(value, method):
    kernel, data, scalars = problem(method, 3, 3, "float64")
    data["a"][1, 4] = value
    run(vectors_of(kernel), data, scalars)
    assert data["info"].tolist() == [0, 1]


@pytest.mark.parametrize("method", METHODS)
def test_an_iteration_that_is_cut_short_is_told(monkeypatch, method):
    from batchlas._kernels import golub_kahan, rotations

    monkeypatch.setattr(golub_kahan, "SWEEPS", 0)
    monkeypatch.setattr(rotations, "SWEEPS", 1)
    kernel, data, scalars = problem(method, 4, 4, "float64")
    run(vectors_of(kernel), data, scalars)
    assert data["info"][0] == 1


def test_has_own_kernel():
    assert has_own_kernel(4, 4, "float32")
    assert not has_own_kernel(5, 5, "float32")
    assert not has_own_kernel(4, 4, "complex64")
    assert not has_own_kernel(4, 3, "float64")


@pytest.mark.parametrize("method", METHODS)
def test_one_text_for_all_shapes(method):
    """Whole vectors are loaded from and stored to scratch memory."""
    kernel, _, _ = problem(method, 4, 4, "float64")
    source = render(vectors_of(kernel), OPENCL).source
    assert source.count("vload2(0, &scratch[") > 50
    assert "scratch[" not in source.replace("&scratch[", "")


@pytest.mark.parametrize("target", [CUDA, DPEX])
@pytest.mark.parametrize("method", [*METHODS, "orders"])
def test_other_targets_print_them(method, target):
    kernel, _, _ = problem(method, 3, 3, "complex128")
    k = Scheduler(kernel, target)
    k.convert_loop_to_global()
    assert (
        kernel.info.name in render(k.get_optimized_ast(kernel.info.name), target).entry
    )
