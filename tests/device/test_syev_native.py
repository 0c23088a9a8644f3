"""The families ``jacobi`` and ``ql``: every width pinned, on NumPy and dpnp arrays."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from checks import assert_all_nan, assert_eigh, assert_same_bits, assert_values
from families import DTYPES, HERMITIAN, mixed
from libraries import DPNP

import batchlas
import batchlas._backends.numpy as numpy_backend
from batchlas._kernels.limits import JACOBI_LARGEST, ql_capacity
from batchlas._ops.syev import QL, Jacobi, SyevCall, can_run, candidates
from batchlas._runtime.sycl import why_no_queue
from batchlas._select import ScopedPin
from batchlas.exceptions import PinError

pytestmark = pytest.mark.skipif(
    why_no_queue() is not None, reason=f"no kernels on the host: {why_no_queue()}"
)
NATIVE = {
    dtype: [c for c in candidates(dtype, "numpy") if isinstance(c, Jacobi | QL)]
    for dtype in DTYPES
}
CHOICES = [(dtype, choice) for dtype in DTYPES for choice in NATIVE[dtype]]
IDS = [f"{dtype}-{choice}" for dtype, choice in CHOICES]
every_choice = pytest.mark.parametrize(("dtype", "choice"), CHOICES, ids=IDS)
# Both sides of the block of 4 rows, and orders that are and are not multiples of it.
ORDERS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 17, 33)
SLOW_ORDERS = (*range(1, 41), 48, 64, 96, 128)


def orders_of(choice, orders, dtype="float64"):
    largest = JACOBI_LARGEST if isinstance(choice, Jacobi) else 128
    if isinstance(choice, QL):
        largest = ql_capacity(dtype, choice.width)
    return [n for n in orders if n <= largest]


def hermitian(batch, n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((batch, n, n)).astype(dtype)
    if a.dtype.kind == "c":
        a = (a + 1j * rng.standard_normal(a.shape)).astype(dtype)
    return np.ascontiguousarray(a + a.swapaxes(-1, -2).conj())


def solve(a, choice, uplo="L"):
    with ScopedPin("syev", str(choice)):
        w, v = batchlas.linalg.eigh(a, UPLO=uplo)
        return w, v, batchlas.linalg.eigvalsh(a, UPLO=uplo)


def check(a, choice, uplo="L"):
    w, v, values = solve(a, choice, uplo)
    assert_eigh(a, w, v, uplo=uplo)
    assert_values(a, values, w)
    assert (np.diff(values, axis=-1) >= 0).all()


def same_bits(found, expected):
    for one, other in zip(found, expected, strict=True):
        assert_same_bits(one, other)


@every_choice
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_every_matrix_and_only_the_named_triangle(dtype, choice, uplo):
    for n in orders_of(choice, ORDERS, dtype):
        whole = hermitian(37, n, dtype)
        other = np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)
        a = whole.copy()
        a[(slice(None), *other)] = np.nan
        before = a.copy()
        w, v, values = solve(a, choice, uplo)
        assert_same_bits(a, before)
        assert_eigh(whole, w, v)
        assert_values(whole, values, w)


@every_choice
def test_families_of_matrices(dtype, choice):
    for n in orders_of(choice, ORDERS, dtype):
        check(mixed(HERMITIAN, n, dtype), choice)


@every_choice
@pytest.mark.parametrize("scale", ["overflow", "underflow"])
def test_the_limits_of_range(dtype, choice, scale):
    for n in orders_of(choice, (2, 3, 4, 5, 9), dtype):
        stacks = [case.stack(n, dtype, scale=scale, batch=2) for case in HERMITIAN]
        check(np.concatenate(stacks), choice, "U")


@pytest.mark.slow
@pytest.mark.parametrize("case", HERMITIAN, ids=str)
@every_choice
def test_every_order_and_family(dtype, choice, case):
    for n in orders_of(choice, SLOW_ORDERS, dtype):
        check(case.stack(n, dtype), choice, "LU"[n % 2])


@every_choice
def test_neighbours_change_no_bit(dtype, choice):
    """Matrices that take few and many sweeps, alone and side by side, both ways."""
    for n in orders_of(choice, (2, 3, 4, 6, 13), dtype):
        a = mixed(HERMITIAN, n, dtype)
        together = solve(a, choice)
        backwards = solve(np.ascontiguousarray(a[::-1]), choice)
        same_bits([x[::-1] for x in backwards], together)
        for b, matrix in enumerate(a):
            same_bits(solve(matrix, choice), [x[b] for x in together])


@every_choice
@pytest.mark.parametrize("batch", [1, 3, 17, 1024])
def test_place_in_the_batch_changes_no_bit(dtype, choice, batch):
    for n in orders_of(choice, (3, 7), dtype):
        (one,) = hermitian(1, n, dtype)
        found = solve(np.broadcast_to(one, (batch, n, n)), choice)
        alone = solve(one[None], choice)
        expected = [np.broadcast_to(x[0], (batch, *x.shape[1:])) for x in alone]
        same_bits(found, expected)


@every_choice
@pytest.mark.parametrize("bad", [0, 4, 8], ids=["first", "middle", "last"])
def test_one_bad_matrix(dtype, choice, bad):
    for n in orders_of(choice, (1, 2, 4, 5, 9), dtype):
        a = hermitian(9, n, dtype)
        w, v, _ = solve(a, choice)
        rest = np.arange(9) != bad
        for value in (np.nan, np.inf, -np.inf):
            for place in {(n - 1, 0), (n - 1, n - 1)}:
                spoilt = a.copy()
                spoilt[(bad, *place)] = value
                with ScopedPin("syev", str(choice)):
                    result = batchlas.linalg.eigh_ex(spoilt)
                assert np.flatnonzero(result.info).tolist() == [bad]
                assert_all_nan(result.eigenvalues[bad])
                assert_all_nan(result.eigenvectors[bad])
                same_bits([result.eigenvalues[rest]], [w[rest]])
                same_bits([result.eigenvectors[rest]], [v[rest]])


@every_choice
def test_diagonal_matrices_are_exact_and_ties_keep_their_order(dtype, choice):
    n = 4
    diagonal = np.array([2.0, 1.0, 2.0, 1.0], dtype)
    w, v, values = solve(np.diag(diagonal)[None], choice)
    assert w.tolist() == values.tolist() == [[1, 1, 2, 2]]
    assert_same_bits(np.abs(v[0]), np.eye(n, dtype=dtype).real[:, [1, 3, 0, 2]])


@every_choice
@pytest.mark.parametrize("size", [1.0, 2.0**20, 2.0**-20])
def test_order_1_is_exact_and_order_2_nearly_so(dtype, choice, size):
    one = np.full((3, 1, 1), -size, dtype)
    w, v, values = solve(one, choice)
    assert (w == -size).all()
    assert (values == -size).all()
    assert (v == 1).all()
    two = np.array([[[2, 1], [1, 2]], [[1, 0], [0, -1]], [[0, 0], [0, 0]]], dtype)
    w, _, values = solve(two * np.array(size, two.real.dtype), choice)
    exact = np.array([[1, 3], [-1, 1], [0, 0]]) * size
    for found in (w, values):
        np.testing.assert_allclose(found, exact, rtol=4 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_widths_of_a_family_agree(dtype):
    for family in (Jacobi, QL):
        narrow, wide = (c for c in NATIVE[dtype] if isinstance(c, family))
        for n in orders_of(narrow, (2, 4, 7), dtype):
            a = hermitian(40, n, dtype)
            same_bits(solve(a, wide), solve(a, narrow))


@every_choice
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_matrices_stored_by_columns_are_read_in_place(monkeypatch, dtype, choice, uplo):
    def no_copy(a):
        assert a.flags.c_contiguous
        return a

    monkeypatch.setattr(numpy_backend, "packed", no_copy)
    for n in orders_of(choice, (2, 3, 6), dtype):
        whole = hermitian(21, n, dtype)
        other = np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)
        a = whole.copy()
        a[(slice(None), *other)] = np.nan
        columns = np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)
        same_bits(solve(columns, choice, uplo), solve(a, choice, uplo))
        assert_eigh(whole, *solve(columns, choice, uplo)[:2])


@pytest.mark.parametrize("layout", ["fortran", "reversed", "spread", "read-only"])
@pytest.mark.parametrize("n", [3, 6])
def test_layouts(layout, n):
    a = hermitian(10, n, "complex128")
    views = {
        "fortran": np.asfortranarray(a),
        "reversed": a[::-1, ::-1, ::-1],
        "spread": np.repeat(a, 3, axis=2)[..., ::3],
        "read-only": a.copy(),
    }
    view = views[layout]
    view.flags.writeable = False
    check(view, "ql:8")
    if n <= JACOBI_LARGEST:
        check(view, "jacobi:8")


@pytest.mark.parametrize(("n", "pin"), [(3, "jacobi:8"), (6, "ql:8")])
def test_dpnp_arrays_give_the_same_bits(n, pin):
    pytest.importorskip("dpnp")
    if find_spec("numba_dpex"):
        pytest.skip("numba-dpex adds and multiplies in two steps, OpenCL C in one")
    a = hermitian(21, n, "complex128")
    w, v, values = solve(DPNP.asarray(a), pin)
    assert all(map(DPNP.owns, (w, v, values)))
    same_bits(map(DPNP.to_host, (w, v, values)), solve(a, pin))


def test_largest_orders_and_beyond():
    device = numpy_backend.device(None)

    def runs(choice, n):
        return can_run(choice, SyevCall("complex128", "numpy", "V", n, 2), device)

    for choice in NATIVE["complex128"]:
        (largest,) = orders_of(choice, range(1, 200), "complex128")[-1:]
        assert runs(choice, largest)
        assert not runs(choice, largest + 1)
        check(hermitian(5, largest, "complex128"), choice)
        with pytest.raises(PinError, match="cannot run"):
            solve(hermitian(1, largest + 1, "complex128"), choice)


@pytest.mark.parametrize("dtype", DTYPES)
def test_candidates(dtype):
    real = np.zeros(1, dtype).real.itemsize
    bits = [512, 1024] if dtype == "float64" else [256, 512]
    for family in (Jacobi, QL):
        widths = [c.width for c in NATIVE[dtype] if isinstance(c, family)]
        assert [8 * real * width for width in widths] == bits
    assert not [c for c in candidates(dtype, "cupy") if isinstance(c, Jacobi | QL)]
