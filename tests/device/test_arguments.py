"""Arguments that are refused, with NumPy's errors and texts."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS, SQUARE_ONLY

from batchlas import linalg


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (0,)], ids=str)
def test_fewer_than_two_dimensions(library, shape, call):
    text = f"{len(shape)}-dimensional array given. Array must be at least"
    with pytest.raises(np.linalg.LinAlgError, match=text):
        call(library.asarray(np.ones(shape)))


@pytest.mark.parametrize("call", SQUARE_ONLY, ids=str)
@pytest.mark.parametrize("shape", [(2, 3), (4, 3, 2), (0, 2, 3)], ids=str)
def test_matrices_that_are_not_square(library, shape, call):
    text = "Last 2 dimensions of the array must be square"
    with pytest.raises(np.linalg.LinAlgError, match=text):
        call(library.asarray(np.ones(shape)))


@pytest.mark.parametrize("function", ["eigh", "eigvalsh", "eigh_ex"])
@pytest.mark.parametrize("uplo", ["X", "", "LU", "Lower"])
def test_a_wrong_uplo(library, uplo, function):
    with pytest.raises(ValueError, match="UPLO argument must be 'L' or 'U'"):
        vars(linalg)[function](library.asarray(np.eye(2)), UPLO=uplo)


def test_results_are_named(library):
    a = library.asarray(np.eye(2))
    assert linalg.eigh(a)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.eigh_ex(a)._fields == ("eigenvalues", "eigenvectors", "info")
    assert linalg.svd(a)._fields == ("U", "S", "Vh")
    assert linalg.svd_ex(a)._fields == ("U", "S", "Vh", "info")
    assert linalg.cholesky_ex(a)._fields == ("factor", "info")


def test_positional_arguments_stand_where_numpy_has_them(library):
    a = library.asarray(np.ones((2, 3)))
    assert linalg.svd(a, False)[2].shape == (2, 3)
    assert linalg.svd(a, True, False).shape == (2,)
    assert linalg.svd(a[:, :2], True, True, True)[1].shape == (2,)
    assert linalg.eigh(a[:, :2], "U")[0].shape == (2,)
    with pytest.raises(TypeError, match="positional"):
        linalg.cholesky(a[:, :2], True)


def test_svd_without_vectors_has_none_in_its_status(library):
    u, s, vh, info = linalg.svd_ex(library.asarray(np.eye(2)), compute_uv=False)
    assert u is None
    assert vh is None
    assert s.shape == (2,)
    assert info.shape == ()
