"""Dask arrays: lazy, block by block, with the results of the whole stack."""

from __future__ import annotations

import numpy as np
import pytest
from families import definite

import batchlas
from batchlas import linalg

da = pytest.importorskip("dask.array", reason="Dask is not installed")

CALLS = {
    "cholesky": (linalg.cholesky, {}),
    "cholesky upper": (linalg.cholesky, {"upper": True}),
    "cholesky_ex": (linalg.cholesky_ex, {}),
    "eigh": (linalg.eigh, {}),
    "eigh upper": (linalg.eigh, {"UPLO": "U"}),
    "eigh_ex": (linalg.eigh_ex, {}),
    "eigvalsh": (linalg.eigvalsh, {}),
    "svd": (linalg.svd, {}),
    "svd thin": (linalg.svd, {"full_matrices": False}),
    "svd of Hermitian": (linalg.svd, {"hermitian": True}),
    "svd values": (linalg.svd, {"compute_uv": False}),
    "svd_ex values": (linalg.svd_ex, {"compute_uv": False}),
    "svdvals": (linalg.svdvals, {}),
}
CHUNKS = {
    "batch": (2, 3, 4, 4),
    "matrix axes too": (3, 7, 2, 3),
    "one": (6, 7, 4, 4),
}


def parts(results):
    return tuple(results) if isinstance(results, tuple) else (results,)


@pytest.mark.parametrize("dtype", ["float32", "complex128", "int64"])
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_blocks_give_what_the_stack_gives(call, chunks, dtype):
    function, options = call
    stack = (9 * definite(6, 7, 4, 4)).astype(dtype)
    lazy = function(da.from_array(stack, chunks=chunks), **options)
    expected = function(stack, **options)
    assert type(lazy) is (type(expected) if isinstance(expected, tuple) else da.Array)
    for one, other in zip(parts(lazy), parts(expected), strict=True):
        if other is None:
            assert one is None
            continue
        assert isinstance(one, da.Array)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        # a block's batch may be served by another family than the whole stack's
        found = one.compute()
        assert (found.shape, found.dtype) == (other.shape, other.dtype)
        tolerance = 200 * np.finfo(np.result_type(other, np.float32)).eps
        np.testing.assert_allclose(
            np.abs(found), np.abs(other), rtol=tolerance, atol=tolerance * 100
        )


def test_one_matrix_in_chunks():
    a = definite(5, 5)
    w = linalg.eigvalsh(da.from_array(a, chunks=2))
    np.testing.assert_allclose(w.compute(), np.linalg.eigvalsh(a), atol=1e-12)


def test_nothing_is_computed_before_it_is_asked_for():
    def refuse(_block):
        pytest.fail("a block was computed")

    x = da.from_array(definite(4, 3, 3), chunks=(2, 3, 3)).map_blocks(
        refuse, dtype=float, meta=np.empty((0, 0, 0))
    )
    assert linalg.svd(x).S.shape == (4, 3)


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (da.ones(4), batchlas.LinAlgError, "at least two-dimensional"),
        (da.ones((2, 3, 4)), batchlas.LinAlgError, "must be square"),
        (da.ones((2, 3, 3), dtype="float16"), TypeError, "float16 is unsupported"),
        (da.ones((2, 3, 3))[da.ones(2) > 0].T, batchlas.LinAlgError, "to be known"),
    ],
    ids=["vector", "not square", "float16", "unknown sizes"],
)
def test_bad_arguments_are_refused_at_once(array, error, text):
    with pytest.raises(error, match=text):
        linalg.eigh(array)


def test_a_bad_uplo_is_refused_at_once():
    with pytest.raises(ValueError, match="UPLO"):
        linalg.eigh(da.ones((2, 3, 3)), UPLO="X")


def test_a_failure_is_raised_by_compute_or_filled_as_asked_at_the_call():
    stack = np.stack([np.eye(2), -np.eye(2), np.eye(2)])
    x = da.from_array(stack, chunks=(1, 2, 2))
    lazy = linalg.cholesky(x)
    with batchlas.errstate(linalg="nan"):
        filled = linalg.cholesky(x)
        with pytest.raises(batchlas.LinAlgError):
            lazy.compute()
    found = filled.compute()
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[[0, 2]], stack[[0, 2]])


def test_installed_functions_take_dask_arrays():
    a = definite(4, 3, 3)
    with batchlas.installed():
        w = np.linalg.eigh(da.from_array(a, chunks=(2, 3, 3))).eigenvalues
    assert isinstance(w, da.Array)
    np.testing.assert_allclose(w.compute(), np.linalg.eigvalsh(a), atol=1e-12)
