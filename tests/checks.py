"""What a right result is: checks that raise, and look at every matrix of a stack.

Gates are multiples of n * u, u being the unit roundoff of the result's dtype, relative
to the 1-norm of each matrix. All arithmetic is in double precision. Matrices are first
brought to a size near 1 by a power of two, which is exact, so that stacks near overflow
or underflow can be checked too. NaN passes no gate.
"""

from __future__ import annotations

import numpy as np

RESIDUAL = 64
ORTHOGONALITY = 64


def assert_cholesky(a, factor, *, upper=False):
    """Check that `factor` is the triangular factor of every matrix of `a`."""
    a, factor = np.asarray(a), np.asarray(factor)
    assert factor.shape == a.shape
    assert factor.dtype == a.dtype
    other = np.tril(factor, -1) if upper else np.triu(factor, 1)
    assert not other.any(), "the other triangle is not zero"
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    assert (diagonal.real > 0).all(), "the diagonal is not positive"
    assert not diagonal.imag.any(), "the diagonal is not real"
    exponents = 2 * (_exponents(a) // 2)
    matrix = _times_power(_from_triangle(a, "U" if upper else "L"), -exponents)
    wide = _times_power(factor, -exponents // 2)
    left = _adjoint(wide) if upper else wide
    product = left @ _adjoint(left)
    assert_below(
        _norm(product - matrix), _gate(a, RESIDUAL) * _norm(matrix), "residual"
    )


def assert_eigh(a, w, v, *, uplo="L", orthogonality=ORTHOGONALITY):
    """Check eigenvalues and eigenvectors of every matrix of `a` by definition."""
    a, w, v = np.asarray(a), np.asarray(w), np.asarray(v)
    assert v.shape == a.shape
    assert v.dtype == a.dtype
    assert_real_values(a, w, np.diff(w.astype(np.float64), axis=-1) >= 0)
    exponents = _exponents(a)
    matrix = _times_power(_from_triangle(a, uplo), -exponents)
    values = _times_power(w[..., None, :], -exponents)
    wide = _wide(v)
    difference = matrix @ wide - wide * values
    assert_below(
        _norm(difference), _gate(a, RESIDUAL) * _norm(matrix), "residual |AV - VW|"
    )
    assert_orthonormal(v, orthogonality)


def assert_svd(a, u, s, vh, *, orthogonality=ORTHOGONALITY):
    """Check a decomposition of every matrix of `a`, reduced or full, by definition."""
    a, u, s, vh = map(np.asarray, (a, u, s, vh))
    m, n = a.shape[-2:]
    k = min(m, n)
    assert s.shape == (*a.shape[:-2], k)
    assert u.shape[:-1] == (*a.shape[:-2], m)
    assert vh.shape == (*a.shape[:-2], vh.shape[-2], n)
    assert (u.shape[-1], vh.shape[-2]) in {(m, n), (k, k)}
    assert u.dtype == vh.dtype == a.dtype
    steps = np.diff(s.astype(np.float64), axis=-1) <= 0
    assert_real_values(a, s, steps & (s[..., 1:] >= 0))
    exponents = _exponents(a)
    matrix = _times_power(a, -exponents)
    values = _times_power(s[..., None, :], -exponents)
    product = (_wide(u)[..., :k] * values) @ _wide(vh)[..., :k, :]
    assert_below(
        _norm(product - matrix), _gate(a, RESIDUAL) * _norm(matrix), "residual"
    )
    assert_orthonormal(u, orthogonality)
    assert_orthonormal(_adjoint(vh), orthogonality)


def assert_real_values(a, values, in_order):
    """Check the dtype of eigenvalues or singular values, and that they are sorted."""
    assert values.dtype == a.real.dtype
    assert in_order.all(), "the values are not sorted"


def assert_values(a, values, expected):
    """Check eigenvalues or singular values against others of the same matrices."""
    a, values, expected = map(np.asarray, (a, values, expected))
    assert values.dtype == a.real.dtype
    assert values.shape == expected.shape
    exponents = _exponents(a)
    norm = _norm(_times_power(a, -exponents))
    difference = _times_power(values[..., None, :], -exponents) - _times_power(
        expected[..., None, :], -exponents
    )
    worst = np.abs(difference).max(axis=(-2, -1), initial=0)
    limit = _gate(a, RESIDUAL) * norm + _quantum(values, exponents)
    assert_below(worst, limit, "error of the values")


def assert_orthonormal(v, gate=ORTHOGONALITY):
    """Check that the columns of every matrix are orthonormal."""
    wide = _wide(v)
    excess = _adjoint(wide) @ wide - np.eye(v.shape[-1])
    assert_below(_norm(excess), _gate(v, gate), "orthogonality")


def assert_below(found, limit, what):
    """Check one number per matrix; NaN is never below."""
    bad = np.argwhere(~(found <= limit))
    if len(bad):
        index = tuple(int(i) for i in bad[0])
        limits = np.broadcast_to(limit, found.shape)
        message = (
            f"{what}: {len(bad)} of {found.size} matrices, first {index}: "
            f"{found[index]:.3g} > {limits[index]:.3g}"
        )
        raise AssertionError(message)


def assert_same_bits(found, expected):
    """Check that two arrays agree in dtype, shape and every bit."""
    found, expected = np.ascontiguousarray(found), np.ascontiguousarray(expected)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes(), "the bits differ"


def assert_all_nan(array):
    """Check that an array has elements, all of them NaN."""
    assert array.size
    assert np.isnan(array).all()


def _gate(a, multiple):
    unit_roundoff = np.finfo(a.dtype).eps / 2
    return multiple * max(a.shape[-2:]) * unit_roundoff


def _norm(matrix):
    """Return the 1-norm of every matrix: the largest sum of a column."""
    return np.abs(matrix).sum(axis=-2).max(axis=-1, initial=0)


def _wide(array):
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _adjoint(matrix):
    return matrix.swapaxes(-1, -2).conj()


def _quantum(values, exponents):
    """Return the distance between the smallest numbers, scaled as the matrices are."""
    smallest = np.full_like(exponents, np.finfo(values.dtype).smallest_subnormal, float)
    return _times_power(smallest, -exponents)[..., 0, 0]


def _exponents(a):
    """Return per matrix the power of two above its largest entry, as (..., 1, 1)."""
    largest = np.maximum(np.abs(a.real), np.abs(a.imag))
    largest = largest.max(axis=(-2, -1), keepdims=True).astype(np.float64)
    return np.frexp(largest)[1]


def _times_power(array, exponents):
    """Return array * 2**exponents, exactly, in two steps that stay in range."""
    half = exponents // 2
    return _wide(array) * np.ldexp(1.0, half) * np.ldexp(1.0, exponents - half)


def _from_triangle(a, uplo):
    """Return the Hermitian matrices that one triangle stands for."""
    triangle = np.tril(a) if uplo == "L" else np.triu(a)
    strict = np.tril(a, -1) if uplo == "L" else np.triu(a, 1)
    whole = triangle + _adjoint(strict)
    if a.dtype.kind != "c":
        return whole
    imaginary = np.diagonal(whole, axis1=-2, axis2=-1).imag
    return whole - 1j * imaginary[..., None] * np.eye(a.shape[-1])
