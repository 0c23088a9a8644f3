"""The short way of small NumPy stacks: the same results, and nothing passes it by."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import batchlas
from batchlas import LinAlgError
from batchlas._ops.quick import quick_gesvd, quick_potrf, quick_syev
from batchlas._select import ScopedPin

pytestmark = pytest.mark.skipif(
    np.__version__ < "2", reason="NumPy 1 keeps its error state out of contexts"
)
DTYPES = ("float32", "float64", "complex64", "complex128")


@pytest.fixture(autouse=True)
def lapack():
    """Let LAPACK be every choice, whatever the tables say."""
    with batchlas.scoped_env(
        BATCHLAS_POTRF_ROUTE="vendor",
        BATCHLAS_SYEV_ROUTE="vendor",
        BATCHLAS_GESVD_ROUTE="vendor",
    ):
        yield


def stack(dtype, shape=(3, 4, 4), seed=0):
    rng = np.random.default_rng(seed)
    b = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        b = b + 1j * rng.standard_normal(shape)
    return (b @ b.swapaxes(-1, -2).conj() + np.eye(shape[-1])).astype(dtype)


def by_the_long_way(function, *args, **kwargs):
    """Return what LAPACK gives while somebody looks on."""
    with batchlas.scoped_env(BATCHLAS_SELECT_TRACE="1"):
        result = function(*args, **kwargs)
    return result if isinstance(result, tuple) else (result,)


CASES = {
    "cholesky": (quick_potrf, "L", {}),
    "cholesky upper": (quick_potrf, "U", {"upper": True}),
    "eigh": (quick_syev, "VL", {}),
    "eigh U": (quick_syev, "VU", {"UPLO": "U"}),
    "eigvalsh": (quick_syev, "NL", {}),
    "svd": (quick_gesvd, "all", {}),
    "svd thin": (quick_gesvd, "thin", {"full_matrices": False}),
    "svdvals": (quick_gesvd, "none", {}),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 4, 4), (2, 2, 5, 5)])
def test_results_are_those_of_the_long_way(name, dtype, shape):
    quick, option, kwargs = CASES[name]
    function = getattr(batchlas.linalg, name.split()[0])
    a = stack(dtype, shape)
    short = quick(a, option)
    assert short is not None
    results = function(a, **kwargs)
    results = results if isinstance(results, tuple) else (results,)
    expected = by_the_long_way(function, a, **kwargs)
    for one, two, three in zip(short, results, expected, strict=True):
        assert one.dtype == two.dtype == three.dtype
        assert one.flags.c_contiguous
        np.testing.assert_array_equal(one, three)
        np.testing.assert_array_equal(two, three)


@pytest.mark.parametrize("shape", [(4, 3, 5), (4, 5, 3)])
@pytest.mark.parametrize("job", ["all", "thin", "none"])
def test_rectangular_stacks(shape, job):
    a = np.random.default_rng(0).standard_normal(shape)
    kwargs = {"full_matrices": job == "all", "compute_uv": job != "none"}
    expected = by_the_long_way(batchlas.linalg.svd, a, **kwargs)
    for one, two in zip(quick_gesvd(a, job), expected, strict=True):
        np.testing.assert_array_equal(one, two)


def test_any_strides():
    a = stack("float64", (6, 4, 4))
    for view in (a.swapaxes(1, 2), a[::-2], a[:, ::-1, ::-1], np.asfortranarray(a)):
        (expected,) = by_the_long_way(batchlas.linalg.cholesky, view)
        np.testing.assert_array_equal(quick_potrf(view, "L")[0], expected)


@pytest.mark.parametrize(
    "other",
    [
        np.ones((2, 3)),
        np.ones(3),
        np.empty((0, 2, 2)),
        np.eye(2, dtype=int),
        np.eye(2, dtype=">f8"),
        np.eye(2, dtype=np.float16),
        np.ma.array(np.eye(2)),
        [[1.0]],
        1.0,
        np.broadcast_to(np.eye(8), (2000, 8, 8)),
    ],
)
def test_the_rest_goes_the_long_way(other):
    assert quick_potrf(other, "L") is None


def spoilt(value, place):
    a = stack("float64", (3, 4, 4))
    a[(1, *place)] = value
    return a


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_lapack_sees_no_matrix_that_is_not_finite(value, monkeypatch):
    from batchlas._vendor import lapack_quick

    seen = []
    routine = lapack_quick.routine

    def watched(*args):
        gufunc, letters, signature = routine(*args)

        def call(a, **options):
            seen.append(np.isfinite(a).all())
            return gufunc(a, **options)

        return call, letters, signature

    monkeypatch.setattr(lapack_quick, "routine", watched)
    for quick, option in ((quick_potrf, "L"), (quick_syev, "VL"), (quick_gesvd, "all")):
        quick.forget()
        assert quick(stack("float64", (3, 4, 4)), option) is not None
        for place in ((0, 0), (3, 1), (3, 3)):
            assert quick(spoilt(value, place), option) is None
        quick.forget()
    assert seen == [True] * 3


@pytest.mark.parametrize("shape", [(3, 4, 4), (200, 4, 4)])
def test_failures_are_told_as_ever(shape):
    a = stack("float64", shape)
    batchlas.linalg.cholesky(a)
    a[1, 2, 2] = -1
    assert quick_potrf(a, "L") is None
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        with pytest.raises(LinAlgError, match="leading minor of order 3") as caught:
            batchlas.linalg.cholesky(a)
    assert [list(each) for each in caught.value.indices] == [[1]]
    with batchlas.errstate(linalg="nan"):
        factor = batchlas.linalg.cholesky(a)
    assert np.isnan(factor[1]).all()
    assert np.isfinite(factor[[0, 2]]).all()


def test_what_overflows_on_the_way_goes_the_long_way():
    """Squares of what is finite may not be."""
    a = stack("float64", (2, 3, 3)) * 1e200
    assert quick_potrf(a, "L") is None
    np.testing.assert_allclose(
        batchlas.linalg.cholesky(a), np.linalg.cholesky(a), rtol=1e-14
    )


def test_pins_trace_and_settings_are_heeded(capfd):
    a = stack("float64", (5, 3, 3))
    assert quick_potrf(a, "L") is not None
    with ScopedPin("potrf", "vendor"):
        assert quick_potrf(a, "L") is not None
    with ScopedPin("potrf", "threads"):
        assert quick_potrf(a, "L") is None
    with batchlas.scoped_env(BATCHLAS_SELECT_TRACE="1"):
        assert quick_potrf(a, "L") is None
        batchlas.linalg.cholesky(a)
    assert "potrf" in capfd.readouterr().err
    with batchlas.scoped_env(BATCHLAS_POTRF_ROUTE="threads"):
        assert quick_potrf(a, "L") is None
    assert quick_potrf(a, "L") is not None


def test_a_nested_call_does_no_harm():
    """A finaliser may call while a call of the same thread is under way."""
    from batchlas._vendor.lapack_quick import _silence

    a = stack("float64")
    batchlas.linalg.cholesky(a)
    result = _silence.run(batchlas.linalg.cholesky, a)
    np.testing.assert_array_equal(result, np.linalg.cholesky(a))


def test_threads_do_not_disturb_each_other():
    from concurrent.futures import ThreadPoolExecutor

    a = stack("float64")
    expected = batchlas.linalg.eigh(a)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: batchlas.linalg.eigh(a), range(500)):
            np.testing.assert_array_equal(result.eigenvectors, expected.eigenvectors)
