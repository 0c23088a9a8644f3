"""Stacks without elements: shapes and dtypes, without a kernel being asked."""

from __future__ import annotations

import numpy as np
import pytest
from calls import SQUARE_ONLY
from families import DTYPES

from batchlas import linalg

SQUARES = ((0, 0), (3, 0, 0), (2, 0, 3, 0, 0), (0, 2, 2), (2, 0, 3, 4, 4))
OTHERS = ((0, 2), (2, 0), (2, 0, 3), (2, 3, 0), (0, 2, 3), (0, 3, 2), (0, 0, 3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_cholesky(library, shape, dtype):
    empty = library.asarray(np.empty(shape, dtype))
    assert_empty(library, linalg.cholesky(empty), shape, dtype)
    factor, info = linalg.cholesky_ex(empty, upper=True)
    assert_empty(library, factor, shape, dtype)
    assert_good(info, shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_eigh(library, shape, dtype):
    empty = library.asarray(np.empty(shape, dtype))
    real = np.empty(0, dtype).real.dtype
    for result in (linalg.eigh(empty), linalg.eigh_ex(empty)[:2]):
        w, v = result
        assert_empty(library, w, shape[:-1], real)
        assert_empty(library, v, shape, dtype)
    assert_empty(library, linalg.eigvalsh(empty), shape[:-1], real)
    assert_good(linalg.eigh_ex(empty).info, shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [*SQUARES, *OTHERS], ids=str)
@pytest.mark.parametrize("full", [True, False], ids=["full", "reduced"])
def test_svd(library, full, shape, dtype):
    """The square factor of an empty matrix is the identity."""
    empty = library.asarray(np.empty(shape, dtype))
    *batch, m, n = shape
    k = min(m, n)
    rows, columns = (m, n) if full else (k, k)
    real = np.empty(0, dtype).real.dtype
    result = linalg.svd(empty, full_matrices=full)
    assert_identity(library, result.U, (*batch, m, rows), dtype)
    assert_empty(library, result.S, (*batch, k), real)
    assert_identity(library, result.Vh, (*batch, columns, n), dtype)
    assert_empty(library, linalg.svdvals(empty), (*batch, k), real)
    assert_good(linalg.svd_ex(empty, full_matrices=full).info, shape)


@pytest.mark.parametrize("shape", SQUARES, ids=str)
def test_hermitian_svd(library, shape):
    empty = library.asarray(np.empty(shape))
    u, s, vh = linalg.svd(empty, hermitian=True)
    assert_empty(library, u, shape, "float64")
    assert_empty(library, s, shape[:-1], "float64")
    assert_empty(library, vh, shape, "float64")


@pytest.mark.parametrize("call", SQUARE_ONLY, ids=str)
@pytest.mark.parametrize("shape", OTHERS, ids=str)
def test_empty_matrices_that_are_not_square(library, shape, call):
    if shape[-1] == shape[-2]:
        return
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        call(library.asarray(np.empty(shape)))


@pytest.mark.parametrize("call", SQUARE_ONLY, ids=str)
@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_empty_integers_become_float64(library, dtype, call):
    for result in call(library.asarray(np.empty((2, 0, 0), dtype))):
        assert result.dtype == np.float64


def test_identities_are_on_the_array_s_queue():
    dpnp = pytest.importorskip("dpnp")
    dpctl = pytest.importorskip("dpctl")
    queue = dpctl.SyclQueue()
    u, _, vh = linalg.svd(dpnp.empty((2, 3, 0), sycl_queue=queue))
    assert u.sycl_queue == queue
    assert vh.sycl_queue == queue
    np.testing.assert_array_equal(dpnp.asnumpy(u), np.tile(np.eye(3), (2, 1, 1)))


def assert_empty(library, array, shape, dtype):
    assert library.owns(array)
    assert array.shape == shape
    assert array.dtype == dtype
    assert array.size == 0


def assert_identity(library, array, shape, dtype):
    assert library.owns(array)
    assert array.dtype == dtype
    expected = np.broadcast_to(np.eye(*shape[-2:]), shape)
    np.testing.assert_array_equal(library.to_host(array), expected)


def assert_good(info, shape):
    assert info.dtype == np.int32
    assert info.shape == shape[:-2]
    assert not info.any()
