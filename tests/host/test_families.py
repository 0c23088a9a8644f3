"""The library families ``vendor`` and ``threads``: NumPy's results, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS, GENERAL_SVD
from checks import assert_all_nan, assert_same_bits
from families import DEFINITE, DTYPES, GENERAL, mixed

import batchlas
from batchlas._vendor import lapack

PINS = {
    family: {f"BATCHLAS_{op}_ROUTE": family for op in ("POTRF", "SYEV", "GESVD")}
    for family in ("vendor", "threads")
}
# numpy.linalg's functions that NumPy 1 lacks, or that it computes in another way.
IN_NUMPY = tuple(
    call
    for call in CALLS
    if call.name in vars(np.linalg)
    and not call.options.get("hermitian")
    and not (call.options.get("upper") and np.__version__ < "2")
)


def numpys(call, a):
    result = vars(np.linalg)[call.name](a, **call.options)
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("call", IN_NUMPY, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 5, 16, 33])
@pytest.mark.parametrize("family", PINS)
def test_bits_are_numpys(family, n, dtype, call):
    stack = np.concatenate([mixed(DEFINITE, n, dtype)] * 3)
    with batchlas.scoped_env(**PINS[family]):
        assert batchlas.explain(call.name, stack, **call.options).choice == family
        found = call(stack)
    for one, other in zip(found, numpys(call, stack), strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("call", GENERAL_SVD, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 3), (7, 4), (5, 20)], ids=str)
@pytest.mark.parametrize("family", PINS)
def test_bits_of_rectangles_are_numpys(family, shape, dtype, call):
    if call.name not in vars(np.linalg):
        pytest.skip(f"NumPy {np.__version__} has no {call.name}")
    m, n = shape
    stack = mixed(GENERAL, n, dtype, m=m)
    with batchlas.scoped_env(**PINS[family]):
        found = call(stack)
    for one, other in zip(found, numpys(call, stack), strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("batch", [1, 2, 3, 7, 8, 9, 64, 65])
def test_slices_of_every_size_cover_the_batch(batch, call):
    stack = np.concatenate([mixed(DEFINITE, 4, "float64")] * 6)[:batch]
    with batchlas.scoped_env(**PINS["vendor"]):
        expected = call(stack)
    with batchlas.scoped_env(**PINS["threads"]):
        found = call(stack)
    for one, other in zip(found, expected, strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 20, 39])
@pytest.mark.parametrize("family", PINS)
def test_a_bad_matrix_fails_alone(family, place, value, call):
    good = np.concatenate([mixed(DEFINITE, 4, "float64")] * 4)[:40]
    good[place] = np.eye(4)
    bad = good.copy()
    bad[place, 3, 3] = value
    with batchlas.scoped_env(**PINS[family]), batchlas.errstate(linalg="nan"):
        found, expected = call(bad), call(good)
    keep = np.arange(40) != place
    for one, other in zip(found, expected, strict=True):
        assert_all_nan(one[place])
        assert_same_bits(one[keep], other[keep])


@pytest.mark.parametrize("family", PINS)
def test_floating_point_settings_of_the_caller_do_not_matter(family):
    """NumPy marks failures by a flag: a caller who traps it sees our error alone."""
    stack = np.stack([np.eye(3), -np.eye(3)])
    with batchlas.scoped_env(**PINS[family]), np.errstate(all="raise"):
        with pytest.raises(batchlas.LinAlgError, match="positive definite"):
            batchlas.linalg.cholesky(stack)
        batchlas.linalg.cholesky(np.eye(3) * 1e-320)
        batchlas.linalg.svd(np.full((2, 2), 1e-300))
        assert np.geterr() == dict.fromkeys(
            ["divide", "over", "under", "invalid"], "raise"
        )


@pytest.mark.parametrize(("name", "gufunc"), [("eigh", "eigh_lo"), ("svd", "svd_f")])
def test_lapacks_status_is_listened_to(monkeypatch, name, gufunc):
    """A finite matrix that LAPACK gives up on: NumPy marks it, and raises a flag."""
    real = lapack._GUFUNCS[gufunc]

    def failing(a, **how):
        results = real(a, **how)
        for each in results:
            each[1] = np.nan
        np.sqrt(np.array([-1.0]))
        return results

    monkeypatch.setitem(lapack._GUFUNCS, gufunc, failing)
    stack = np.stack([np.eye(120)] * 3)  # not small: the long way
    pins = batchlas.scoped_env(**PINS["vendor"])
    with pins, pytest.raises(batchlas.LinAlgError) as caught:
        vars(batchlas.linalg)[name](stack)
    assert caught.value.indices == ((1,),)
