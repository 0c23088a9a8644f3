"""Inputs on which other libraries have been wrong, with the right answers."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_eigh, assert_svd
from libraries import host

from batchlas import linalg


def test_the_upper_factor_of_a_complex_matrix_is_not_conjugated(library):
    a = library.asarray(np.array([[1, -2j], [2j, 5]]))
    (upper,) = host([linalg.cholesky(a, upper=True)])
    np.testing.assert_array_equal(upper, [[1, -2j], [0, 1]])
    (lower,) = host([linalg.cholesky(a)])
    np.testing.assert_array_equal(lower, [[1, 0], [2j, 1]])


def test_hermitian_svd_is_sorted_for_values_of_both_signs(library):
    a = np.array([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])
    u, s, vh = host(linalg.svd(library.asarray(a), hermitian=True))
    np.testing.assert_allclose(s, [2**0.5, 2**0.5, 0], atol=1e-15)
    assert_svd(a, u, s, vh)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_hermitian_svd_of_zero_has_orthonormal_vectors(library, n):
    """The sign of a zero eigenvalue must not wipe out its vector."""
    a = np.zeros((2, n, n))
    a[1, 0, 0] = -1
    u, s, vh = host(linalg.svd(library.asarray(a), hermitian=True))
    assert_svd(a, u, s, vh)


def test_a_double_singular_value(library):
    a = -2 * np.ones((3, 3)) - 2 * np.eye(3)
    u, s, vh = host(linalg.svd(library.asarray(a)))
    np.testing.assert_allclose(s, [8, 2, 2], rtol=1e-14)
    assert_svd(a, u, s, vh)


@pytest.mark.parametrize("exponent", [-300, -200, 200, 300])
def test_values_far_from_one(library, exponent):
    scale = 10.0**exponent
    a = library.asarray(np.array([[2.0, 1], [1, 2]]) * scale)
    (w,) = host([linalg.eigvalsh(a)])
    np.testing.assert_allclose(w / scale, [1, 3], rtol=1e-14)
    (s,) = host([linalg.svdvals(a)])
    np.testing.assert_allclose(s / scale, [3, 1], rtol=1e-14)


def test_cholesky_of_a_subnormal_matrix():
    """On the host alone: devices may flush subnormal numbers to zero."""
    found = linalg.cholesky(np.eye(3) * 1e-320)
    np.testing.assert_allclose(found, np.eye(3) * np.sqrt(1e-320), rtol=1e-12)


def test_a_small_value_beside_large_ones_in_float32():
    a = np.diag(np.array([1, 1e-2, 1e-40], np.float32))
    assert linalg.eigvalsh(a)[0] == a[2, 2]


def test_ill_conditioned_float32(library):
    n = 12
    hilbert = 1 / (np.arange(n)[:, None] + np.arange(n) + 1)
    a = hilbert.astype(np.float32)
    assert_svd(a, *host(linalg.svd(library.asarray(a))))
    assert_eigh(a, *host(linalg.eigh(library.asarray(a))))


def test_the_identity_broadcast_over_many_matrices(library):
    """A batch beyond 2^16 with stride 0."""
    shape = ((1 << 17) - 7, 2, 2)
    a = library.xp.broadcast_to(library.asarray(np.eye(2)), shape)
    (factor,) = host([linalg.cholesky(a)])
    np.testing.assert_array_equal(factor, np.broadcast_to(np.eye(2), shape))


def test_a_wide_matrix_takes_no_square_memory(library):
    """Reduced: the square factor of the long side would have 2 * 10^10 elements."""
    a = np.ones((3, 150_000))
    _, s, vh = host(linalg.svd(library.asarray(a), full_matrices=False))
    assert vh.shape == (3, 150_000)
    np.testing.assert_allclose(s[0], np.sqrt(a.size), rtol=1e-9)


def test_neighbours_of_an_indefinite_matrix(library):
    a = library.asarray(np.stack([np.eye(2), -np.eye(2), 2 * np.eye(2)]))
    factor, info = host(linalg.cholesky_ex(a))
    assert info.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(factor[0], np.eye(2))
    np.testing.assert_array_equal(factor[2], np.sqrt(2) * np.eye(2))
    assert np.isnan(factor[1]).all()
