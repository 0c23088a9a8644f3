"""The status array: statements 119 to 128 of the specification."""

from __future__ import annotations

import numpy as np
import pytest
from calls import WITH_STATUS
from checks import assert_same_bits
from families import definite
from numpy.lib.stride_tricks import as_strided

import batchlas
from batchlas import linalg
from batchlas._dispatch import backend_of
from batchlas._ops import SPECS, potrf, syev
from batchlas._select import ScopedPin

BATCH = (2, 3)
# What the caller's memory holds before: every element must be written.
BEFORE = -7


@pytest.fixture
def stack():
    a = definite(*BATCH, 4, 4)
    a[0, 1, 0, 0] = np.nan
    return a


def receiver(library, shape=BATCH, dtype=np.int32):
    return library.asarray(np.full(shape, BEFORE, dtype))


def with_info(call, a, info):
    return call.status.function(a, **call.options, info=info)


@pytest.mark.parametrize("call", WITH_STATUS, ids=str)
def test_the_caller_s_array_receives_the_status(library, call, stack):
    """119, 122: in place, every element, and nothing else changes."""
    a = library.asarray(stack)
    expected = call.status.on_host(a)
    info = receiver(library)
    found = with_info(call, a, info)
    assert found.info is info
    assert library.to_host(info).tolist() == [[0, 1, 0], [0, 0, 0]]
    for one, other in zip(found[:-1], expected[:-1], strict=True):
        if other is not None:
            assert_same_bits(library.to_host(one), other)


@pytest.mark.parametrize("call", WITH_STATUS, ids=str)
def test_a_good_stack_clears_the_caller_s_array(library, call):
    """122: what was there before does not add to it."""
    info = receiver(library)
    with_info(call, library.asarray(definite(*BATCH, 4, 4)), info)
    assert not library.to_host(info).any()


@pytest.mark.parametrize("call", WITH_STATUS, ids=str)
def test_a_part_of_a_larger_array_receives_the_status(library, call, stack):
    """131, 132: by its strides; what lies between its elements stays as it is."""
    whole = receiver(library, (4, 7))
    with_info(call, library.asarray(stack), whole[::-2, 1::2])
    expected = np.full((4, 7), BEFORE)
    expected[::-2, 1::2] = [[0, 1, 0], [0, 0, 0]]
    assert library.to_host(whole).tolist() == expected.tolist()


@pytest.mark.parametrize("call", WITH_STATUS, ids=str)
@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 3, 0, 0), (4, 4)], ids=str)
def test_empty_stacks_and_single_matrices(library, call, shape):
    a = library.asarray(definite(*shape) if 0 not in shape else np.empty(shape))
    info = receiver(library, shape[:-2])
    assert with_info(call, a, info).info is info
    assert not library.to_host(info).any()


@pytest.mark.parametrize("call", WITH_STATUS, ids=str)
@pytest.mark.parametrize("shape", [(2,), (3, 2), (2, 2), (2, 4), (6,), ()], ids=str)
def test_an_array_of_another_shape_is_refused(library, call, shape, stack):
    """121: too short, and anything else that is not the batch's."""
    info = receiver(library, shape)
    with pytest.raises(ValueError, match="info has shape"):
        with_info(call, library.asarray(stack), info)
    assert (library.to_host(info) == BEFORE).all()


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.float32], ids=str)
def test_an_array_of_another_dtype_is_refused(library, dtype, stack):
    info = library.asarray(np.zeros(BATCH, dtype))
    with pytest.raises(ValueError, match="info has dtype"):
        linalg.cholesky_ex(library.asarray(stack), info=info)


@pytest.mark.parametrize("info", [[0, 0], 0, "status"], ids=repr)
def test_what_is_no_array_is_refused(library, info, stack):
    with pytest.raises(TypeError, match="info is a"):
        linalg.eigh_ex(library.asarray(stack), info=info)


def test_an_array_of_another_library_is_refused(stack):
    dpnp = pytest.importorskip("dpnp", reason="dpnp is not installed")
    with pytest.raises(TypeError, match="info is a ndarray, not a dpnp array"):
        linalg.svd_ex(dpnp.asarray(stack), info=np.zeros(BATCH, np.int32))
    with pytest.raises(TypeError, match="not a numpy array"):
        linalg.svd_ex(stack, info=dpnp.zeros(BATCH, dtype="int32"))


def test_memory_that_cannot_be_written_is_refused(stack):
    info = np.zeros(BATCH, np.int32)
    info.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        linalg.cholesky_ex(stack, info=info)


def test_elements_that_share_memory_are_refused(stack):
    info = as_strided(np.zeros(6, np.int32), BATCH, (4, 4))
    with pytest.raises(ValueError, match="share memory"):
        linalg.cholesky_ex(stack, info=info)


def test_the_stack_s_own_memory_is_refused(stack):
    """Inputs are never written."""
    before = stack.copy()
    info = stack.view(np.int32).reshape(-1)[:6].reshape(BATCH)
    with pytest.raises(ValueError, match="overlaps the stack"):
        linalg.cholesky_ex(stack, info=info)
    assert_same_bits(stack, before)


def test_another_queue_is_refused():
    dpnp = pytest.importorskip("dpnp", reason="dpnp is not installed")
    import dpctl

    a = dpnp.asarray(definite(3, 2, 2))
    info = dpnp.zeros(3, dtype="int32", sycl_queue=dpctl.SyclQueue(a.sycl_device))
    with pytest.raises(ValueError, match="another device or queue"):
        linalg.cholesky_ex(a, info=info)


def test_a_usm_ndarray_receives_the_status():
    dpnp = pytest.importorskip("dpnp", reason="dpnp is not installed")
    a = dpnp.asarray(-definite(3, 2, 2)).get_array()
    info = dpnp.full(3, BEFORE, dtype="int32").get_array()
    assert linalg.cholesky_ex(a, info=info).info is info
    assert dpnp.asnumpy(info).tolist() == [1, 1, 1]


def test_arrays_that_compute_themselves_take_no_info():
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    with pytest.raises(TypeError, match="info= is for arrays"):
        linalg.eigh_ex(da.ones((4, 2, 2)), info=np.zeros(4, np.int32))


def test_every_choice_reports_the_same_status(library):
    """120, 124, 127: 0, or the minor; at the first place, the last and between."""
    a = definite(9, 5, 5)
    minors = {0: 1, 3: 5, 4: 2, 8: 3}
    for place, minor in minors.items():
        a[place, minor - 1, minor - 1] = -1
    array = library.asarray(a)
    backend = backend_of(array)
    for choice in potrf.candidates("float64", backend.kind):
        info = receiver(library, (9,))
        with ScopedPin("potrf", choice):
            linalg.cholesky_ex(array, info=info)
        found = library.to_host(info)
        assert found.dtype == np.int32
        assert found.tolist() == [minors.get(place, 0) for place in range(9)]


def test_a_nested_op_s_status_passes_through(library, monkeypatch):
    """122, 167: svd of Hermitian matrices is syev's; nothing clears what it said."""
    from batchlas._ops import gesvd

    a = library.asarray(definite(4, 3, 3))
    status = library.asarray(np.array([0, 5, 0, 2], np.int32))

    def failing(backend, a, uplo, *, vectors):
        w, v, _ = syev.syev(backend, a, uplo, vectors=vectors)
        if backend.spoils_failures:
            backend.fill_nan(w, status)
            backend.fill_nan(v, status)
        return w, v, status

    monkeypatch.setattr(gesvd, "syev", failing)
    found = linalg.svd_ex(a, hermitian=True)
    assert library.to_host(found.info).tolist() == [0, 5, 0, 2]
    assert np.isnan(library.to_host(found.S)[[1, 3]]).all()
    assert np.isfinite(library.to_host(found.S)[[0, 2]]).all()
    with pytest.raises(batchlas.LinAlgError) as caught:
        linalg.svd(a, hermitian=True)
    assert caught.value.indices == ((1,), (3,))


def test_no_status_is_asked_for_where_nothing_failed(library):
    """121: an op that knows that all went well hands out no array at all."""
    if library.name == "cupy":
        pytest.skip("a GPU's status is an array, since asking would wait for it")
    a = library.asarray(definite(30, 4, 4))
    backend = backend_of(a)
    assert potrf.potrf(backend, a, "L")[-1] is None
    assert syev.syev(backend, a, "L", vectors=True)[-1] is None
    assert len(SPECS) == 3
