"""Every matrix of every family, by definition: residual, orthogonality, order."""

from __future__ import annotations

import numpy as np
import pytest
from checks import (
    ORTHOGONALITY,
    assert_cholesky,
    assert_eigh,
    assert_svd,
    assert_values,
)
from families import DEFINITE, DTYPES, GENERAL, HERMITIAN, mixed
from libraries import host

import batchlas
from batchlas import linalg

# Methods that accumulate rotations have their own gate; see the families' docstrings.
ROTATIONS = {"jacobi"}
ROTATION_ORTHOGONALITY = 256

ORDERS = (1, 2, 3, 8, 33)
SHAPES = ((1, 4), (2, 3), (8, 8), (17, 5), (5, 33))
SCALES = ("overflow", "underflow")
# Rows over twenty orders of magnitude: squared, they span more than float32 does.
IN_RANGE = tuple(case for case in DEFINITE if case.name != "rows_scaled")


def orthogonality(function, array, **options):
    """Return the gate of what a call on `array` runs."""
    choice = batchlas.explain(function, array, **options).choice
    family = choice.partition(":")[0]
    return ROTATION_ORTHOGONALITY if family in ROTATIONS else ORTHOGONALITY


def check_cholesky(library, stack):
    array = library.asarray(stack)
    (factor,) = host([linalg.cholesky(array)])
    assert_cholesky(stack, factor)


def check_eigh(library, stack):
    array = library.asarray(stack)
    w, v = host(linalg.eigh(array))
    assert_eigh(stack, w, v, orthogonality=orthogonality("eigh", array))
    (values,) = host([linalg.eigvalsh(array)])
    assert_values(stack, values, w)


def check_svd(library, stack):
    array = library.asarray(stack)
    options = {"full_matrices": False}
    u, s, vh = host(linalg.svd(array, **options))
    assert_svd(stack, u, s, vh, orthogonality=orthogonality("svd", array, **options))
    (values,) = host([linalg.svdvals(array)])
    assert_values(stack, values, s)


@pytest.mark.parametrize("case", DEFINITE, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_cholesky(library, n, dtype, case):
    check_cholesky(library, case.stack(n, dtype))


@pytest.mark.parametrize("case", HERMITIAN, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_eigh(library, n, dtype, case):
    check_eigh(library, case.stack(n, dtype))


@pytest.mark.parametrize("case", GENERAL, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_svd(library, shape, dtype, case):
    m, n = shape
    check_svd(library, case.stack(n, dtype, m=m))


@pytest.mark.parametrize("case", IN_RANGE, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", SCALES)
def test_cholesky_at_the_limits_of_range(library, scale, dtype, case):
    check_cholesky(library, case.stack(4, dtype, scale=scale))


@pytest.mark.parametrize("case", HERMITIAN, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", SCALES)
def test_eigh_at_the_limits_of_range(library, scale, dtype, case):
    check_eigh(library, case.stack(4, dtype, scale=scale))


@pytest.mark.parametrize("case", GENERAL, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", SCALES)
def test_svd_at_the_limits_of_range(library, scale, dtype, case):
    check_svd(library, case.stack(4, dtype, m=5, scale=scale))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 6, 16])
def test_cholesky_of_a_mixed_stack(library, n, dtype):
    check_cholesky(library, mixed(DEFINITE, n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 6, 16])
def test_eigh_of_a_mixed_stack(library, n, dtype):
    check_eigh(library, mixed(HERMITIAN, n, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 2), (6, 9), (16, 12)], ids=str)
def test_svd_of_a_mixed_stack(library, shape, dtype):
    m, n = shape
    check_svd(library, mixed(GENERAL, n, dtype, m=m))


@pytest.mark.parametrize("case", HERMITIAN, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_svd(library, dtype, case):
    stack = case.stack(6, dtype)
    array = library.asarray(stack)
    u, s, vh = host(linalg.svd(array, hermitian=True))
    gate = orthogonality("svd", array, hermitian=True)
    assert_svd(stack, u, s, vh, orthogonality=gate)
    (values,) = host([linalg.svd(array, compute_uv=False, hermitian=True)])
    assert_values(stack, values, s)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(4, 4), (7, 3), (3, 7)], ids=str)
def test_full_svd(library, shape, dtype):
    m, n = shape
    stack = mixed(GENERAL, n, dtype, m=m)
    u, s, vh = host(linalg.svd(library.asarray(stack)))
    assert u.shape[-1] == m
    assert vh.shape[-2] == n
    assert_svd(stack, u, s, vh)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_cholesky_reads_and_writes_one_triangle(library, n, upper, dtype):
    stack = mixed(DEFINITE, n, dtype)
    (expected,) = host([linalg.cholesky(library.asarray(stack), upper=upper)])
    assert_cholesky(stack, expected, upper=upper)
    poisoned = np.where(unread(n, "U" if upper else "L"), np.nan, stack).astype(dtype)
    (factor,) = host([linalg.cholesky(library.asarray(poisoned), upper=upper)])
    assert_cholesky(stack, factor, upper=upper)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("uplo", ["L", "U", "l", "u"])
@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_eigh_reads_one_triangle(library, n, uplo, dtype):
    stack = mixed(HERMITIAN, n, dtype)
    mask = unread(n, uplo.upper())
    poisoned = library.asarray(np.where(mask, np.nan, stack).astype(dtype))
    w, v = host(linalg.eigh(poisoned, UPLO=uplo))
    assert_eigh(stack, w, v, uplo=uplo.upper())
    (values,) = host([linalg.eigvalsh(poisoned, UPLO=uplo)])
    assert_values(stack, values, w)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_eigh_ignores_the_imaginary_part_of_the_diagonal(library, dtype):
    stack = mixed(HERMITIAN, 5, dtype)
    diagonal = np.arange(5)
    stack[..., diagonal, diagonal] += 3j
    w, v = host(linalg.eigh(library.asarray(stack)))
    assert_eigh(stack, w, v)


@pytest.mark.parametrize("dtype", DTYPES)
def test_hermitian_svd_reads_the_lower_triangle(library, dtype):
    stack = mixed(HERMITIAN, 5, dtype)
    poisoned = np.where(unread(5, "L"), np.nan, stack).astype(dtype)
    u, s, vh = host(linalg.svd(library.asarray(poisoned), hermitian=True))
    assert_svd(stack, u, s, vh)


def unread(n, uplo):
    """Return the mask of the triangle that is not read."""
    upper = ~np.tri(n, dtype=bool)
    return upper if uplo == "L" else upper.T


@pytest.mark.parametrize("function", ["cholesky", "eigh", "svd"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_call_repeated_returns_the_same(library, dtype, function):
    """A kernel that races or reuses memory too early differs from call to call."""
    stack = np.concatenate([mixed(DEFINITE, 12, dtype)] * 8)
    array = library.asarray(stack)
    call = getattr(linalg, function)
    check = {"cholesky": check_cholesky, "eigh": check_eigh, "svd": check_svd}
    check[function](library, stack)
    first = _parts(call(array))
    for _ in range(3):
        for one, other in zip(first, _parts(call(array)), strict=True):
            np.testing.assert_array_equal(one, other)


def _parts(result):
    return host(result if isinstance(result, tuple) else [result])
