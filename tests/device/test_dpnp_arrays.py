"""What only dpnp arrays have: usm_ndarrays, queues, memory kinds, install."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS
from checks import assert_same_bits
from families import DTYPES, definite

import batchlas
from batchlas import linalg

dpnp = pytest.importorskip("dpnp")
dpctl = pytest.importorskip("dpctl")


def numpys_functions():
    return {name: vars(np.linalg)[name] for name in ("cholesky", "eigh", "svd")}


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_usm_ndarray_comes_back_as_one(dtype, call):
    array = dpnp.asarray(definite(3, 4, 4, dtype=dtype))
    usm = array.get_array()
    for one, other in zip(call(usm), call(array), strict=True):
        assert type(one) is type(usm)
        assert_same_bits(dpnp.asnumpy(one), dpnp.asnumpy(other))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_strided_usm_ndarray(call):
    whole = dpnp.asarray(definite(6, 4, 4))
    view = whole.get_array()[::-2]
    expected = call(dpnp.asarray(dpnp.asnumpy(whole)[::-2].copy()))
    for one, other in zip(call(view), expected, strict=True):
        assert_same_bits(dpnp.asnumpy(one), dpnp.asnumpy(other))


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_an_empty_usm_ndarray(call):
    usm = dpnp.empty((0, 3, 3)).get_array()
    for result in call(usm):
        assert type(result) is type(usm)
        assert result.size == 0


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_usm_ndarray_with_a_bad_matrix(call):
    stack = definite(3, 4, 4)
    stack[1, 0, 0] = np.nan
    usm = dpnp.asarray(stack).get_array()
    with pytest.raises(batchlas.LinAlgError) as error:
        call(usm)
    assert error.value.indices == ((1,),)
    with batchlas.errstate(linalg="nan"):
        for result in call(usm):
            assert np.isnan(dpnp.asnumpy(result)[1]).all()


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_results_are_on_the_queue_of_the_input(call):
    queue = dpctl.SyclQueue(dpctl.select_default_device())
    array = dpnp.asarray(definite(3, 4, 4), sycl_queue=queue)
    for result in call(array):
        assert result.sycl_queue == queue


@pytest.mark.parametrize("call", CALLS[:8], ids=str)
@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_every_kind_of_memory(usm_type, call):
    stack = definite(3, 4, 4)
    array = dpnp.asarray(stack, usm_type=usm_type)
    expected = call.on_host(dpnp.asarray(stack))
    for one, other in zip(call.on_host(array), expected, strict=True):
        assert_same_bits(one, other)


def test_a_status_is_beside_the_data():
    queue = dpctl.SyclQueue(dpctl.select_default_device())
    array = dpnp.asarray(definite(3, 4, 4), sycl_queue=queue)
    info = linalg.cholesky_ex(array).info
    assert type(info) is dpnp.ndarray
    assert info.dtype == dpnp.int32
    assert info.sycl_queue == queue


def test_many_bad_matrices_are_found_one_by_one():
    """oneMKL raises for the whole stack; which matrices failed is found by halving."""
    stack = definite(33, 3, 3)
    bad = [0, 1, 7, 16, 31, 32]
    stack[bad] *= -1
    factor, info = linalg.cholesky_ex(dpnp.asarray(stack))
    assert np.flatnonzero(dpnp.asnumpy(info)).tolist() == bad
    good = np.setdiff1d(np.arange(33), bad)
    np.testing.assert_allclose(
        dpnp.asnumpy(factor)[good], np.linalg.cholesky(stack[good]), rtol=1e-12
    )


def test_explain_names_the_device():
    told = batchlas.explain("eigh", dpnp.asarray(definite(3, 4, 4)))
    assert "array=dpnp" in str(told)
    assert dpctl.select_default_device().name.strip() in str(told)


def test_threads_are_no_choice_for_dpnp_arrays():
    from batchlas.exceptions import PinError

    with (
        batchlas.scoped_env(BATCHLAS_SYEV_ROUTE="threads"),
        pytest.raises(PinError, match="BATCHLAS_SYEV_ROUTE"),
    ):
        linalg.eigh(dpnp.asarray(definite(3, 4, 4)))


@pytest.mark.parametrize("name", ["cholesky", "eigh", "eigvalsh", "svd"])
def test_numpy_linalg_takes_dpnp_arrays_while_installed(name):
    array = dpnp.asarray(definite(3, 4, 4))
    expected = vars(linalg)[name](array)
    with batchlas.installed():
        found = vars(np.linalg)[name](array)
        theirs = vars(dpnp.linalg)[name](array)
    for results in zip(*map(_tuple, (found, theirs, expected)), strict=True):
        assert {type(each) for each in results} == {dpnp.ndarray}
        assert_same_bits(*(dpnp.asnumpy(each) for each in results[:2]))
        assert_same_bits(*(dpnp.asnumpy(each) for each in results[1:]))


def _tuple(result):
    return result if isinstance(result, tuple) else (result,)


def test_a_name_taken_from_numpy_before_reaches_batchlas_for_dpnp_arrays():
    from numpy.linalg import cholesky

    stack = np.stack([np.eye(2), -np.eye(2)])
    with batchlas.installed(), pytest.raises(batchlas.LinAlgError) as error:
        cholesky(dpnp.asarray(stack))
    assert error.value.indices == ((1,),)


def test_uninstall_leaves_dpnp_as_it_was():
    before = dict(vars(dpnp.linalg)), dict(vars(dpnp.ndarray)), numpys_functions()
    with batchlas.installed():
        assert dpnp.linalg.eigh is linalg.eigh
        assert hasattr(dpnp.ndarray, "__array_function__")
    assert (dict(vars(dpnp.linalg)), dict(vars(dpnp.ndarray))) == before[:2]
    assert numpys_functions() == before[2]


def test_functions_of_dpnp_that_build_on_ours_keep_working():
    array = dpnp.asarray(definite(3, 3))
    with batchlas.installed():
        found = dpnp.asnumpy(dpnp.linalg.pinv(array))
    np.testing.assert_allclose(found @ dpnp.asnumpy(array), np.eye(3), atol=1e-12)


def test_other_numpy_functions_reach_dpnp_while_installed():
    array = dpnp.asarray(definite(3, 3))
    with batchlas.installed():
        result = np.concatenate([array, array])
    assert type(result) is dpnp.ndarray
    assert result.shape == (6, 3)


def test_a_numpy_call_beside_a_dpnp_call():
    stack = definite(3, 4, 4)
    np.testing.assert_allclose(
        linalg.cholesky(stack),
        dpnp.asnumpy(linalg.cholesky(dpnp.asarray(stack))),
        rtol=1e-12,
    )


@pytest.mark.timeout(60, method="thread")
def test_hermitian_svd_on_an_in_order_queue():
    """dpnp 0.20's copysign hung there."""
    a = definite(20, 4, 4)
    queue = dpctl.SyclQueue(property="in_order")
    x = dpnp.asarray(a, sycl_queue=queue)
    for _ in range(10):
        result = batchlas.linalg.svd(x, hermitian=True)
    assert result.S.sycl_queue == queue
