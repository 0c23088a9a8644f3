"""Cholesky with interleaved matrices: rules, interpreter and NumPy."""

import numpy as np
import pytest
from kernel_zoo import rng

from batchlas._kernels.barriers import verify_barriers
from batchlas._kernels.interpret import check_independence, run
from batchlas._kernels.ir import DType
from batchlas._kernels.potrf_interleaved import local_bytes, potrf
from batchlas._kernels.render import render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA, DPEX, OPENCL

THREADS = 4
DTYPES = ("float32", "float64", "complex64", "complex128")
BOUND = 50  # times n * eps, on matrices of condition about 10


def kernel_of(n, dtype, uplo, threads=THREADS):
    kernel = potrf(n, DType(dtype), uplo, threads)
    scheduler = Scheduler(kernel, DPEX)
    scheduler.convert_loop_to_global()
    return scheduler.get_optimized_ast(kernel.info.name)


def spd(batch, n, dtype):
    b = rng().standard_normal((batch, n, n)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        b = b + np.dtype(dtype).type(1j) * rng().standard_normal(b.shape).astype(dtype)
    return (b @ b.swapaxes(-1, -2).conj() + 2 * n * np.eye(n)).astype(dtype)


def poisoned(stack, uplo):
    """Return the stack with NaN in the triangle that must not be read."""
    n = stack.shape[-1]
    other = np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)
    stack = stack.copy()
    stack[:, other[0], other[1]] = np.nan
    return stack


def arrays_of(stack):
    return {
        "a": stack.reshape(-1).copy(),
        "l": np.full(stack.size, 7, stack.dtype),
        "info": np.full(len(stack), -1, np.int32),
    }


def factored(kernel, stack, order="forward"):
    arrays = arrays_of(stack)
    run(kernel, arrays, {"nb": len(stack)}, order=order)
    np.testing.assert_array_equal(arrays["a"], stack.reshape(-1))
    return arrays["l"].reshape(stack.shape), arrays["info"]


def assert_factor(got, stack, uplo):
    want = np.linalg.cholesky(stack.astype(complex))
    want = want if uplo == "L" else want.swapaxes(-1, -2).conj()
    n = stack.shape[-1]
    size = np.sqrt(np.abs(stack).max())
    bound = BOUND * n * np.finfo(stack.dtype).eps * size
    assert np.abs(got - want).max() <= bound
    other = np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)
    assert not got[:, other[0], other[1]].any()


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize(
    ("n", "dtype"),
    [(n, "float64") for n in (1, 2, 3, 4, 5, 8, 9)]
    + [(3, dtype) for dtype in DTYPES]
    + [(9, "complex64")],
)
def test_factors(n, dtype, uplo):
    kernel = kernel_of(n, dtype, uplo)
    stack = spd(6, n, dtype)  # the second group begins inside the first
    verify_barriers(kernel)
    check_independence(kernel, arrays_of(stack), {"nb": len(stack)})
    got, info = factored(kernel, poisoned(stack, uplo), order="reverse")
    assert_factor(got, stack, uplo)
    np.testing.assert_array_equal(info, 0)


@pytest.mark.parametrize(("n", "threads"), [(1, 16), (2, 16), (3, 16), (3, 32)])
def test_factors_smaller_than_a_group(n, threads):
    """Where the threads' first elements to copy out are of several matrices."""
    kernel = kernel_of(n, "float64", "L", threads)
    stack = spd(threads + 3, n, "float64")
    got, info = factored(kernel, stack)
    assert_factor(got, stack, "L")
    np.testing.assert_array_equal(info, 0)


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.nan, np.inf])
@pytest.mark.parametrize("n", [1, 5, 9])
def test_a_bad_minor_is_numbered_and_its_neighbours_do_not_change(n, bad):
    kernel = kernel_of(n, "float64", "L")
    stack = spd(5, n, "float64")
    want, _ = factored(kernel, stack)
    for minor in {1, n // 2 + 1, n}:
        spoilt = stack.copy()
        spoilt[2, minor - 1, minor - 1] = bad
        got, info = factored(kernel, spoilt)
        np.testing.assert_array_equal(info, [0, 0, minor, 0, 0])
        np.testing.assert_array_equal(got[[0, 1, 3, 4]], want[[0, 1, 3, 4]])


@pytest.mark.parametrize("n", [8, 9, 32])
def test_what_it_keeps_is_what_it_says(n):
    rendered = render(kernel_of(n, "complex64", "L"), DPEX)
    assert rendered.local_bytes == local_bytes(n, 8, THREADS)


@pytest.mark.parametrize("target", [OPENCL, CUDA, DPEX], ids=lambda target: target.name)
def test_every_renderer_prints_it(target):
    text = render(kernel_of(5, "complex64", "U"), target).source
    assert "potrf_U5_complex64_by4" in text
