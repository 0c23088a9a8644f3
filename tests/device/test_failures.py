"""Matrices that fail: what is raised or filled, and that neighbours never notice."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS, CHOLESKY, SQUARE_ONLY, WITH_STATUS
from checks import assert_all_nan, assert_same_bits
from families import DTYPES, definite

import batchlas
from batchlas import errstate, linalg

BATCH = 5
PLACES = {"first": 0, "middle": 2, "last": BATCH - 1}
VALUES = {"nan": np.nan, "inf": np.inf, "minus-inf": -np.inf}


def spoiled(place, value, n=4, dtype="float64"):
    """Return a stack with `value` at [place, n-1, n-1], and one with the identity."""
    stack = definite(BATCH, n, n, dtype=dtype)
    stack[place] = np.eye(n)
    bad = stack.copy()
    bad[place, n - 1, n - 1] = value
    return bad, stack


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_matrix_that_is_not_finite_fails_alone(library, place, value, call):
    bad, good = spoiled(place, value)
    with errstate(linalg="nan"):
        found = call.on_host(library.asarray(bad))
    assert_only_failure(found, call.on_host(library.asarray(good)), place)


@pytest.mark.parametrize("call", CHOLESKY, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_matrix_that_is_not_definite_fails_alone(library, place, dtype, call):
    bad, good = spoiled(place, -1, dtype=dtype)
    with errstate(linalg="nan"):
        found = call.on_host(library.asarray(bad))
    assert_only_failure(found, call.on_host(library.asarray(good)), place)


def assert_only_failure(found, expected, place):
    for one, other in zip(found, expected, strict=True):
        assert_all_nan(one[place])
        keep = np.arange(BATCH) != place
        assert_same_bits(one[keep], other[keep])


@pytest.mark.parametrize("call", WITH_STATUS, ids=str)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("policy", ["raise", "nan", "ignore"])
def test_a_status_names_the_matrix_under_every_policy(library, policy, place, call):
    bad, good = spoiled(place, np.nan)
    with errstate(linalg=policy):
        *found, info = call.status.on_host(library.asarray(bad))
    assert info.dtype == np.int32
    assert info.shape == (BATCH,)
    assert np.flatnonzero(info).tolist() == [place]
    assert info[place] > 0
    *expected, clean = call.status.on_host(library.asarray(good))
    assert not clean.any()
    if call.options.get("compute_uv", True):
        assert_only_failure(found, expected, place)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 33])
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_one_rule_for_every_order(library, value, n, call):
    """NumPy's eigh returns NaN for 2x2 and raises for 3x3; here all raise."""
    stack = np.full((n, n), value)
    with pytest.raises(batchlas.LinAlgError, match="contains NaN or infinity") as error:
        call(library.asarray(stack))
    assert error.value.indices == ((),)
    assert error.value.info.shape == ()


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_error_names_the_matrices(library, call):
    stack = definite(2, 3, 4, 4)
    stack[0, 1, 0, 0] = np.nan
    stack[1, 2, 0, 0] = np.inf
    with pytest.raises(batchlas.LinAlgError) as caught:
        call(library.asarray(stack))
    error = caught.value
    assert error.indices == ((0, 1), (1, 2))
    assert error.info.dtype == np.int32
    assert (error.info > 0).tolist() == [[False, True, False], [False, False, True]]
    text = "2 of 6 matrices failed: [0, 1] contains NaN or infinity; [1, 2] contains"
    assert text in str(error)


@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
@pytest.mark.parametrize("minor", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_leading_minor_that_is_not_definite(library, dtype, minor, upper):
    stack = definite(3, 5, 5, dtype=dtype)
    stack[1] = np.eye(5)
    stack[1, minor - 1, minor - 1] = -1
    stack[1, minor:, minor:] *= -1
    array = library.asarray(stack)
    _, info = linalg.cholesky_ex(array, upper=upper)
    assert library.to_host(info).tolist() == [0, minor, 0]
    text = (
        "Matrix is not positive definite: 1 of 3 matrices failed: "
        f"\\[1\\] leading minor of order {minor} is not positive definite"
    )
    with pytest.raises(batchlas.LinAlgError, match=text) as error:
        linalg.cholesky(array, upper=upper)
    assert error.value.info.tolist() == [0, minor, 0]


@pytest.mark.parametrize("dtype", DTYPES)
def test_semidefinite_and_zero_matrices_are_not_definite(library, dtype):
    ones = np.ones((3, 3))
    stack = np.stack([np.eye(3), np.zeros((3, 3)), -np.eye(3), ones]).astype(dtype)
    _, info = linalg.cholesky_ex(library.asarray(stack))
    assert library.to_host(info).tolist() == [0, 1, 1, 2]


def test_a_long_list_of_failures_is_cut_in_the_text_only(library):
    stack = -definite(20, 2, 2)
    with pytest.raises(batchlas.LinAlgError) as caught:
        linalg.cholesky(library.asarray(stack))
    assert len(caught.value.indices) == 20
    text = str(caught.value)
    assert "20 of 20 matrices failed" in text
    assert text.count("leading minor") == 8
    assert text.endswith("...")


@pytest.mark.parametrize("call", SQUARE_ONLY, ids=str)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_what_is_not_read_fails_nothing(library, value, call):
    stack = definite(3, 4, 4)
    expected = call.on_host(library.asarray(stack))
    reads_upper = call.options.get("upper") or call.options.get("UPLO") == "U"
    poisoned = stack.copy()
    poisoned[(1, 3, 0) if reads_upper else (1, 0, 3)] = value
    for one, other in zip(
        call.on_host(library.asarray(poisoned)), expected, strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.timeout(60, method="thread")  # LAPACK hears no signal
@pytest.mark.parametrize("call", CALLS[-4:], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "matrix",
    [
        [[np.inf, 1, 1], [1, 1, 1], [1, 1, 1]],
        [[np.inf, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 2, 3], [1, np.inf, 3], [1, 2, 3]],
        [[np.inf, 1, 1], [1, 1, 1], [1, 1, 1], [1, 1, 1]],
        [[0, 0], [np.nan, np.nan]],
    ],
    ids=["corner", "diagonal", "centre", "tall", "nan-row"],
)
def test_svd_returns_for_matrices_that_lapack_never_finishes(
    library, matrix, dtype, call
):
    array = library.asarray(np.array([matrix, np.ones_like(matrix)], dtype))
    with errstate(linalg="nan"):
        for result in call.on_host(array):
            assert_all_nan(result[0])
            assert np.isfinite(result[1]).all()


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_ignore_raises_nothing(library, call):
    bad, good = spoiled(2, np.nan)
    with errstate(linalg="ignore"):
        found = call.on_host(library.asarray(bad))
    keep = np.arange(BATCH) != 2
    for one, other in zip(found, call.on_host(library.asarray(good)), strict=True):
        assert_same_bits(one[keep], other[keep])


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_failed_call_leaves_its_input_alone(library, call):
    bad, _ = spoiled(1, np.nan)
    array = library.asarray(bad.copy())
    with errstate(linalg="nan"):
        call(array)
    assert_same_bits(library.to_host(array), bad)


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_products_that_overflow_are_no_factor(library, dtype):
    """LAPACK's status of a matrix whose second pivot is -inf or NaN has been 0."""
    bad = np.diag([0.1, 0.1]).astype(dtype)
    bad[1, 0] = bad[0, 1] = np.finfo(dtype).max
    stack = np.stack([np.eye(2, dtype=dtype), bad, np.eye(2, dtype=dtype)])
    result = linalg.cholesky_ex(library.asarray(stack))
    assert library.to_host(result.info).tolist() == [0, 2, 0]
    assert np.isnan(library.to_host(result.factor)[1]).all()
