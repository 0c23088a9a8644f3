"""The eigenvalue kernels: what they compute, unscheduled and in vectors."""

import numpy as np
import pytest

from batchlas._kernels import ql, syev_jacobi
from batchlas._kernels.driver import apply_asked
from batchlas._kernels.eigen import ql_scalars, triangle
from batchlas._kernels.interpret import check_independence, run
from batchlas._kernels.kinds import DType
from batchlas._kernels.options import Split, Target
from batchlas._kernels.render import Passing, render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.syev_jacobi import syev_jacobi as jacobi_kernel
from batchlas._kernels.syev_ql import syev_ql
from batchlas._kernels.target import CUDA, DPEX, OPENCL

BATCH = 4
CAPACITY = 6
JOBS = {"values": False, "vectors": True}


def stack(n, dtype, uplo):
    """Matrices that take different numbers of sweeps; one is not finite."""
    rng = np.random.default_rng(n)
    a = rng.standard_normal((BATCH, n, n)).astype(dtype)
    if a.dtype.kind == "c":
        a = (a + 1j * rng.standard_normal(a.shape)).astype(dtype)
    a = a + a.swapaxes(-1, -2).conj()
    a[0] = np.diag(np.arange(n, 0, -1))
    a[2] *= 1e-36 if a.dtype.char in "fF" else 1e-300
    good = a.copy()
    a[1, n - 1, n - 1] = np.inf
    other = np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)
    a[(slice(None), *other)] = np.nan
    return a, good


def results(a, vectors):
    arrays = {"a": a, "w": np.full(a.shape[:2], 7, a.real.dtype)}
    if vectors:
        arrays["v"] = np.full_like(a, 7)
    return arrays | {"info": np.full(len(a), -1, np.int32)}


def ql_arguments(a, uplo, vectors):
    arrays = results(a, vectors)
    n = a.shape[-1]
    flat = {k: x.reshape(BATCH, -1) if k in "av" else x for k, x in arrays.items()}
    names = ("n", "step", "row", "column", "turn")
    scalars = dict(
        zip(
            names,
            ql_scalars(n, triangle(uplo, by_columns=False), CAPACITY),
            strict=True,
        )
    )
    return flat, {"nb": BATCH, **scalars}


def vectors_of(kernel, width):
    k = Scheduler(kernel, OPENCL)
    k.convert_loop_to_global()
    batch = [axis.name for axis in k.rngs()].index("b")
    apply_asked(k, (Split(batch, width, Target.VECTOR),))
    return k.get_optimized_ast(kernel.info.name)


def check(arrays, good):
    finite = [0, 2, 3]
    n = good.shape[-1]
    assert arrays["info"].tolist() == [0, 1, 0, 0]
    assert np.isnan(arrays["w"][1]).all()
    wide = np.complex128 if good.dtype.kind == "c" else np.float64
    a, w = good[finite].astype(wide), arrays["w"][finite].astype(np.float64)
    size = np.abs(a).max(axis=(-2, -1))[:, None]
    bound = 30 * n * np.finfo(good.dtype).eps
    assert (np.abs(w - np.linalg.eigvalsh(a)) <= bound * size).all()
    if "v" not in arrays:
        return
    assert np.isnan(arrays["v"][1]).all()
    v = arrays["v"].reshape(good.shape)[finite].astype(wide)
    residual = np.abs(a @ v - v * w[:, None, :]).max(axis=-2)
    assert (residual <= bound * size).all()
    identity = v.swapaxes(-1, -2).conj() @ v
    np.testing.assert_allclose(
        identity, np.broadcast_to(np.eye(n), a.shape), atol=bound
    )


@pytest.mark.parametrize("vectors", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_jacobi_unscheduled_and_in_vectors(dtype, n, uplo, vectors):
    kernel = jacobi_kernel(
        n, DType(dtype), uplo, uplo == "U", 2, BATCH, vectors=vectors
    )
    for each in (kernel, vectors_of(kernel, 4)):
        a, good = stack(n, dtype, uplo)
        arrays = results(a, vectors)
        run(each, arrays, {"nb": BATCH})
        check(arrays, good)


@pytest.mark.parametrize("vectors", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize(
    ("n", "dtype", "uplo"),
    [
        (1, "float64", "L"),
        (2, "complex64", "U"),
        (3, "float32", "U"),
        (5, "float64", "L"),
        (6, "complex128", "L"),
    ],
)
def test_ql_unscheduled_and_in_vectors(n, dtype, uplo, vectors):
    kernel = syev_ql(DType(dtype), CAPACITY, BATCH, vectors=vectors)
    for each in (kernel, vectors_of(kernel, 4)):
        a, good = stack(n, dtype, uplo)
        arrays, scalars = ql_arguments(a, uplo, vectors)
        run(each, arrays, scalars)
        check(arrays, good)


@pytest.mark.parametrize("vectors", JOBS.values(), ids=JOBS)
def test_matrices_are_independent(vectors):
    a, _ = stack(3, "float64", "L")
    kernel = jacobi_kernel(3, DType.FLOAT64, "L", False, 2, BATCH, vectors=vectors)
    check_independence(kernel, results(a, vectors), {"nb": BATCH})
    kernel = syev_ql(DType.FLOAT64, CAPACITY, BATCH, vectors=vectors)
    check_independence(kernel, *ql_arguments(a, "L", vectors))


@pytest.mark.parametrize("vectors", JOBS.values(), ids=JOBS)
def test_lanes_do_not_change_each_other(vectors):
    """Each lane of a vector gives the bits that it gives alone.

    The matrices split into blocks at different places, so that no lane's work reaches
    to the end at first, and what lies beyond belongs to some lane's later blocks.
    """
    n = 5
    kernel = syev_ql(DType.FLOAT64, CAPACITY, BATCH, vectors=vectors)
    a, _ = stack(n, "float64", "L")
    a[:] = a[3]
    for matrix, cut in zip(a, (2, 3, 1, 4), strict=True):
        matrix[cut:, :cut] = 0
    a[2, 3:, :3] = 0
    a[3, 2:, :2] = 0
    together, scalars = ql_arguments(a, "L", vectors)
    run(vectors_of(kernel, 4), together, scalars)
    for b in range(BATCH):
        alone, _ = ql_arguments(np.repeat(a[b : b + 1], BATCH, axis=0), "L", vectors)
        run(vectors_of(kernel, 4), alone, scalars)
        for name in together:
            assert alone[name][0].tobytes() == together[name][b].tobytes(), name


@pytest.mark.parametrize("vectors", JOBS.values(), ids=JOBS)
def test_a_matrix_that_does_not_converge_is_given_up(monkeypatch, vectors):
    monkeypatch.setattr(ql, "SWEEPS", 1)
    monkeypatch.setattr(syev_jacobi, "SWEEPS", 1)
    a, _ = stack(5, "float64", "L")
    a[1] = np.eye(5)
    kernel = syev_ql(DType.FLOAT64, CAPACITY, BATCH, vectors=vectors)
    arrays, scalars = ql_arguments(a, "L", vectors)
    run(vectors_of(kernel, 4), arrays, scalars)
    assert arrays["info"].tolist() == [0, 0, 1, 1]
    kernel = jacobi_kernel(4, DType.FLOAT64, "L", False, 2, BATCH, vectors=vectors)
    arrays = results(np.ascontiguousarray(a[:, :4, :4]), vectors)
    run(vectors_of(kernel, 4), arrays, {"nb": BATCH})
    assert arrays["info"].tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("ren", [OPENCL, CUDA, DPEX], ids=lambda ren: ren.name)
def test_every_target_prints_them(ren):
    for kernel in (
        jacobi_kernel(4, DType.COMPLEX64, "U", True, 4, BATCH, vectors=True),
        syev_ql(DType.FLOAT32, CAPACITY, BATCH, vectors=True),
    ):
        k = Scheduler(kernel, ren)
        k.convert_loop_to_global()
        assert (
            kernel.info.name
            in render(k.get_optimized_ast(kernel.info.name), ren).source
        )


def test_vectors_have_no_masks_and_loops_have_one_condition():
    kernel = vectors_of(syev_ql(DType.FLOAT64, CAPACITY, 8, vectors=True), 8)
    source = render(kernel, OPENCL, Passing.ADDRESS).source
    assert "live" not in source
    assert "= {0" not in source  # arrays are not cleared, which masks would need
    assert "any(" in source


def test_sorted_columns_are_gathered_lane_by_lane():
    kernel = vectors_of(syev_ql(DType.FLOAT64, CAPACITY, 8, vectors=True), 8)
    source = render(kernel, OPENCL, Passing.ADDRESS).source
    assert source.count("((__private double *)q)[8 * ") == 8
