"""The family ``lane``: every width pinned, on NumPy and dpnp arrays."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_all_nan, assert_cholesky, assert_same_bits
from families import DEFINITE, DTYPES, mixed
from libraries import DPNP

import batchlas
import batchlas._backends.numpy as numpy_backend
from batchlas._kernels.limits import fits_in_private_memory
from batchlas._ops.potrf import Lane, PotrfCall, can_run, candidates
from batchlas._runtime.sycl import why_no_queue
from batchlas._select import ScopedPin
from batchlas.exceptions import PinError

pytestmark = pytest.mark.skipif(
    why_no_queue() is not None, reason=f"no kernels on the host: {why_no_queue()}"
)
NARROW = {"float64": 4, "float32": 8, "complex128": 4, "complex64": 8}
# Both sides of the tile of 4, of the unrolled order 8, and of whole runs.
ORDERS = (1, 2, 3, 4, 5, 8, 9, 12, 16, 33)


def name(dtype):
    return np.dtype(dtype).name


def positive(batch, n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    b = rng.standard_normal((batch, n, n))
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal((batch, n, n))
    return (b @ b.swapaxes(-1, -2).conj() + n * np.eye(n)).astype(dtype)


def factor(a, width, *, upper=False):
    with ScopedPin("potrf", f"lane:width={width}:ahead=1"):
        return batchlas.linalg.cholesky(a, upper=upper)


def with_status(a, width, *, upper=False):
    with ScopedPin("potrf", f"lane:width={width}:ahead=1"):
        return batchlas.linalg.cholesky_ex(a, upper=upper)


@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_matrix_and_only_the_named_triangle(dtype, n, upper):
    a = positive(37, n, dtype)
    other = np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)
    a[(slice(None), *other)] = np.nan
    before = a.copy()
    found = factor(a, NARROW[name(dtype)], upper=upper)
    assert_same_bits(a, before)
    a[(slice(None), *other)] = 0
    assert_cholesky(a, found, upper=upper)


@pytest.mark.parametrize("n", [1, 3, 4, 16])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_wide_vectors_give_the_same_bits(dtype, n):
    a = positive(40, n, dtype)
    assert_same_bits(factor(a, 2 * NARROW[dtype]), factor(a, NARROW[dtype]))


@pytest.mark.parametrize("batch", [1, 3, 4, 5, 7, 8, 9, 1024])
@pytest.mark.parametrize("n", [3, 12])
def test_place_in_the_batch_changes_no_bit(n, batch):
    (one,) = positive(1, n, "float64")
    found = factor(np.broadcast_to(one, (batch, n, n)), 4)
    (alone,) = factor(one[None], 4)
    assert_same_bits(found, np.broadcast_to(alone, found.shape))


@pytest.mark.parametrize("bad", [0, 4, 8], ids=["first", "middle", "last"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [3, 9])
def test_one_bad_matrix(n, dtype, bad):
    a = positive(9, n, dtype)
    good = factor(a, NARROW[name(dtype)])
    for value, order in ((-1, n), (np.nan, n), (np.inf, n), (0, n)):
        spoilt = a.copy()
        spoilt[bad, n - 1, n - 1] = value
        result = with_status(spoilt, NARROW[name(dtype)])
        assert result.info[bad] == order
        assert_all_nan(result.factor[bad])
        rest = np.arange(9) != bad
        assert not result.info[rest].any()
        assert_same_bits(result.factor[rest], good[rest])


@pytest.mark.parametrize("place", [(1, 0), (4, 2), (8, 8)], ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_info_of_what_is_not_finite(place, value):
    a = positive(5, 9, "float64")
    a[2][place] = value
    # Whatever stands in row i first reaches the pivot of minor i + 1.
    assert with_status(a, 4).info.tolist() == [0, 0, place[0] + 1, 0, 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [2, 5, 11])
def test_families_of_matrices(n, dtype):
    stack = mixed(DEFINITE, n, dtype)
    assert_cholesky(stack, factor(stack, NARROW[name(dtype)]))


@pytest.mark.parametrize("layout", ["fortran", "reversed", "spread", "read-only"])
def test_layouts(layout):
    a = positive(10, 5, "float64")
    views = {
        "fortran": np.asfortranarray(a),
        "reversed": a[::-1, ::-1, ::-1],
        "spread": np.repeat(a, 3, axis=2)[..., ::3],
        "read-only": a.copy(),
    }
    view = views[layout]
    view.flags.writeable = False
    found = factor(view, 4)
    assert found.flags.c_contiguous
    assert_cholesky(np.ascontiguousarray(view), found)


def test_dpnp_arrays_give_the_same_bits():
    pytest.importorskip("dpnp")
    a = positive(21, 6, "complex128")
    found = factor(DPNP.asarray(a), 4)
    assert DPNP.owns(found)
    assert_same_bits(DPNP.to_host(found), factor(a, 4))


def test_largest_order_and_one_beyond():
    device = numpy_backend.device(None)
    orders = [n for n in range(1, 400) if fits_in_private_memory(n, "float64", 4)]
    largest = orders[-1]
    assert orders == list(range(1, largest + 1))
    assert can_run(Lane(4, 1), PotrfCall("float64", "numpy", "L", largest, 2), device)
    assert not can_run(
        Lane(4, 1), PotrfCall("float64", "numpy", "L", largest + 1, 2), device
    )
    a = positive(5, largest, "float64")
    assert_cholesky(a, factor(a, 4))
    with pytest.raises(PinError, match=r"lane:width=4:ahead=1 cannot run"):
        factor(positive(1, largest + 1, "float64"), 4)


@pytest.mark.parametrize("dtype", DTYPES)
def test_candidates_fill_256_and_512_bits(dtype):
    lanes = [c for c in candidates(name(dtype), "numpy") if isinstance(c, Lane)]
    real = np.zeros(1, dtype).real.itemsize
    found = [(8 * real * c.width, c.ahead) for c in lanes]
    assert found == [(256, 1), (256, 0), (512, 1), (512, 0)]
    assert not [c for c in candidates(name(dtype), "cupy") if isinstance(c, Lane)]
