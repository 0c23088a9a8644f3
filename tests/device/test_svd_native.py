"""The families ``jacobi`` and ``bidiagonal`` of the SVD, pinned, on NumPy and dpnp."""

from __future__ import annotations

import numpy as np
import pytest
from checks import (
    ORTHOGONALITY,
    assert_all_nan,
    assert_orthonormal,
    assert_same_bits,
    assert_svd,
    assert_values,
)
from families import DTYPES, GENERAL, general, mixed
from libraries import DPNP

import batchlas
from batchlas import linalg
from batchlas._kernels import singular
from batchlas._ops.gesvd import candidates
from batchlas._runtime.sycl import why_no_queue
from batchlas._select import ScopedPin

pytestmark = pytest.mark.skipif(
    why_no_queue() is not None, reason=f"no kernels on the host: {why_no_queue()}"
)
# Rotations of Jacobi are applied one after the other, ten sweeps long.
GATES = {"jacobi": 256, "bidiagonal": ORTHOGONALITY}
FAMILIES = tuple(GATES)
# Both sides of the orders that are written out and of steps of 4.
ORDERS = (1, 2, 3, 4, 5, 8, 9, 16, 33)
SHAPES = ((1, 4), (4, 1), (2, 3), (7, 3), (3, 7), (17, 5), (5, 33))


def pin(family, width=8):
    return ScopedPin("gesvd", f"{family}:width={width}")


def decompose(a, family, *, full=False, width=8):
    with pin(family, width):
        return linalg.svd(a, full_matrices=full)


def check(stack, family):
    """Check thin and full vectors and values alone, of every matrix."""
    gate = GATES[family]
    u, s, vh = decompose(stack, family)
    assert_svd(stack, u, s, vh, orthogonality=gate)
    whole = decompose(stack, family, full=True)
    assert_svd(stack, *whole, orthogonality=gate)
    with pin(family):
        assert_values(stack, linalg.svdvals(stack), s)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", ORDERS)
def test_square(n, dtype, family):
    stack = mixed(GENERAL, n, dtype)
    before = stack.copy()
    check(stack, family)
    assert_same_bits(stack, before)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tall_and_wide(shape, dtype, family):
    m, n = shape
    check(mixed(GENERAL, n, dtype, m=m), family)


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [*range(1, 41), 48, 64, 96, 128])
def test_every_order(n, dtype, family):
    stack = mixed(GENERAL, n, dtype)
    check(stack, family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", ["overflow", "underflow"])
@pytest.mark.parametrize("n", [3, 6])
def test_at_the_limits_of_range(n, scale, dtype, family):
    for case in GENERAL:
        check(case.stack(n, dtype, scale=scale), family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_subnormal_row_or_column(n, dtype, family):
    """Its product with the others has no inverse."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((9, n, n))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.standard_normal(a.shape)
    a[..., 0, :] *= float(np.finfo(dtype).tiny) / 64
    for stack in (a, a.swapaxes(-1, -2)):
        check(stack.astype(dtype), family)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 6, 12])
def test_subnormal_elements(n, dtype, family):
    """The largest element is a few times the smallest number."""
    tiny = float(np.finfo(dtype).smallest_subnormal)
    numbers = np.full((n, n), 1.0) * np.arange(1, n + 1)
    with pin(family):
        s = linalg.svdvals((numbers * tiny).astype(dtype))
    expected = np.linalg.svdvals(numbers) * tiny
    assert np.abs(s - expected).max() <= 2 * tiny


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 4, 5, 12, 24])
def test_small_values_to_high_relative_accuracy(n, dtype):
    """Columns of a well-conditioned matrix times sizes over many orders of magnitude.

    Whatever the sizes, every value is determined to the dtype's precision times the
    condition of that matrix, and one-sided Jacobi finds it; bidiagonalisation would
    lose those below eps times the largest.
    """
    rng = np.random.default_rng(n)
    least = -30 if np.dtype(dtype).char in "fF" else -60
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    sizes = 2.0 ** np.linspace(0, least, n).round()
    stack = np.stack([q * sizes, q[:, ::-1] * sizes[::-1], q * rng.permutation(sizes)])
    stack = stack.astype(dtype)
    with pin("jacobi"):
        s = linalg.svdvals(stack)
    exact = np.stack([precise_values(matrix) for matrix in stack])
    assert np.abs(s / exact - 1).max() <= 16 * n * np.finfo(dtype).eps


def precise_values(matrix):
    """Return singular values by one-sided Jacobi in extended precision."""
    x = matrix.real.astype(np.longdouble)
    pairs = [(p, q) for p in range(len(x)) for q in range(p + 1, len(x))]
    for _ in range(30):
        turned = [turn(x, p, q) for p, q in pairs]
        if not any(turned):
            return np.sort(np.sqrt((x * x).sum(0)))[::-1].astype(np.float64)
    raise AssertionError(matrix)


def turn(x, p, q):
    """Make two columns orthogonal; return whether they were not."""
    a, b, g = x[:, p] @ x[:, p], x[:, q] @ x[:, q], x[:, p] @ x[:, q]
    if abs(g) <= 1e-17 * np.sqrt(a * b):
        return False
    cot = (b - a) / (2 * g)
    t = np.copysign(1, cot) / (abs(cot) + np.sqrt(1 + cot * cot))
    c = 1 / np.sqrt(1 + t * t)
    x[:, p], x[:, q] = c * (x[:, p] - t * x[:, q]), c * (t * x[:, p] + x[:, q])
    return True


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("batch", [1, 7, 8, 9, 1024])
@pytest.mark.parametrize("n", [3, 12])
def test_place_in_the_batch_changes_no_bit(n, batch, family):
    one = general(1, n, n)
    found = decompose(np.broadcast_to(one, (batch, n, n)), family)
    alone = decompose(one, family)
    for part, expected in zip(found, alone, strict=True):
        assert_same_bits(part, np.broadcast_to(expected, part.shape))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 3, 6, 12])
def test_neighbours_change_no_bit(n, dtype, family):
    """Neighbours that need more sweeps, or none, and that do not converge at once."""
    stack = mixed(GENERAL, n, dtype)
    together = decompose(stack, family)
    for place in range(len(stack)):
        alone = decompose(stack[place : place + 1], family)
        for part, expected in zip(together, alone, strict=True):
            assert_same_bits(part[place : place + 1], expected)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (9, 6)], ids=str)
def test_wide_vectors_give_the_same_bits(shape, dtype, family):
    stack = mixed(GENERAL, shape[1], dtype, m=shape[0])
    narrow = decompose(stack, family)
    for part, expected in zip(decompose(stack, family, width=16), narrow, strict=True):
        assert_same_bits(part, expected)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [(0, 0), (2, 1), (3, 4)], ids=str)
@pytest.mark.parametrize("bad", [0, 4, 8])
def test_what_is_not_finite_fails_alone(bad, place, value, family):
    stack = general(9, 4, 5)
    good = decompose(stack, family)
    stack[bad][place] = value
    with pin(family):
        result = linalg.svd_ex(stack, full_matrices=False)
    assert np.flatnonzero(result.info).tolist() == [bad]
    assert result.info[bad] == 1
    rest = np.arange(9) != bad
    for part, expected in zip(result[:3], good, strict=True):
        assert_all_nan(part[bad])
        assert_same_bits(part[rest], expected[rest])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (4, 4), (8, 8), (9, 5), (5, 9)], ids=str)
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_vectors_of_exact_zeros_are_completed(rank, shape, dtype, family):
    m, n = shape
    stack = np.zeros((5, m, n), dtype)
    rng = np.random.default_rng(0)
    for matrix in stack:
        rows, columns = rng.permutation(m)[:rank], rng.permutation(n)[:rank]
        matrix[rows, columns] = rng.integers(1, 9, rank)
    u, s, vh = decompose(stack, family, full=True)
    assert (s[:, rank:] == 0).all()
    assert (s[:, :rank] > 0).all()
    assert_svd(stack, u, s, vh)
    assert_orthonormal(u)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
@pytest.mark.parametrize("n", [3, 4, 7])
def test_one_row_or_column_that_is_not_zero(n, dtype, family):
    """The missing vectors are none of the axes."""
    stack = np.zeros((2 * n, n, n), dtype)
    for i in range(n):
        stack[i, i] = stack[n + i, :, i] = np.arange(1, n + 1)
    u, s, vh = decompose(stack, family)
    assert_svd(stack, u, s, vh)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [2, 3, 6])
def test_rows_orthogonal_already_are_sorted(n, family):
    stack = np.broadcast_to(np.diag(np.arange(1.0, n + 1)), (8, n, n))
    u, s, vh = decompose(stack, family)
    np.testing.assert_array_equal(s, np.arange(n, 0, -1.0) * np.ones((8, 1)))
    assert_svd(stack, u, s, vh)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["fortran", "reversed", "spread", "read-only"])
def test_layouts(layout, family):
    a = general(10, 5, 5)
    view = {
        "fortran": np.asfortranarray(a),
        "reversed": a[::-1, ::-1, ::-1],
        "spread": np.repeat(a, 3, axis=2)[..., ::3],
        "read-only": a.copy(),
    }[layout]
    view.flags.writeable = False
    u, s, vh = decompose(view, family)
    assert_svd(np.ascontiguousarray(view), u, s, vh, orthogonality=GATES[family])


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_over_several_axes(family):
    a = general(2, 3, 4, 5, dtype="complex64")
    u, s, vh = decompose(a, family)
    assert u.shape == (2, 3, 4, 4)
    assert_svd(a, u, s, vh, orthogonality=GATES[family])


def test_scratch_memory_in_pieces(monkeypatch):
    """A batch that is cut gives the bits of one that is not."""
    a = general(37, 6, 9)
    whole = decompose(a, "bidiagonal")
    monkeypatch.setattr(singular, "_SCRATCH_BYTES", 1)
    monkeypatch.setattr(singular, "_LEAST_VECTORS", 2)
    for part, expected in zip(decompose(a, "bidiagonal"), whole, strict=True):
        assert_same_bits(part, expected)


@pytest.mark.parametrize("family", FAMILIES)
def test_dpnp_arrays_give_the_same_bits(family):
    pytest.importorskip("dpnp")
    a = general(21, 6, 5, dtype="complex128")
    found = decompose(DPNP.asarray(a), family)
    for part, expected in zip(found, decompose(a, family), strict=True):
        assert DPNP.owns(part)
        assert_same_bits(DPNP.to_host(part), expected)


def test_candidates():
    for dtype in DTYPES:
        native = [c for c in candidates(dtype, "numpy") if not c.uses_library]
        assert list(map(str, native)) == [
            f"{family}:width={width}" for family in FAMILIES for width in (8, 16)
        ]
        assert not {c.name for c in candidates(dtype, "cupy")} & set(FAMILIES)


def test_explain_names_the_family_that_is_pinned():
    with ScopedPin("gesvd", "jacobi:width=8"):
        assert "jacobi:width=8" in batchlas.explain("svd", general(2, 3, 3)).choice
