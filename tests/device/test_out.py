"""Results in the caller's memory (``out=``)."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_same_bits
from families import definite
from numpy.lib.stride_tricks import as_strided

from batchlas import linalg

BATCH, M, N = (2, 3), 5, 4
BEFORE = -7.0
DTYPES = ("float32", "float64", "complex64", "complex128")


def square(dtype="float64"):
    a = definite(*BATCH, N, N).astype(dtype)
    if a.dtype.kind == "c":
        a[..., 1, 0] += 0.5j
        a[..., 0, 1] -= 0.5j
    return a


def tall(dtype="float64"):
    return np.random.default_rng(0).standard_normal((*BATCH, M, N)).astype(dtype)


CALLS = {
    "cholesky": (linalg.cholesky_ex, square, {}),
    "upper": (linalg.cholesky_ex, square, {"upper": True}),
    "eigh": (linalg.eigh_ex, square, {}),
    "svd": (linalg.svd_ex, tall, {}),
    "thin": (linalg.svd_ex, tall, {"full_matrices": False}),
    "hermitian": (linalg.svd_ex, square, {"hermitian": True}),
    "values": (linalg.svd_ex, tall, {"compute_uv": False}),
}


def like(library, array):
    """Return an array for a result of the shape and dtype of `array`, None for None."""
    if array is None:
        return None
    host = library.to_host(array)
    return library.asarray(np.full(host.shape, BEFORE, host.dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_the_caller_s_arrays_receive_the_results(library, name, dtype):
    function, build, options = CALLS[name]
    a = library.asarray(build(dtype))
    *expected, _ = function(a, **options)
    out = tuple(like(library, each) for each in expected)
    *found, info = function(a, **options, out=out)
    assert not library.to_host(info).any()
    for one, receiver, right in zip(found, out, expected, strict=True):
        assert one is receiver
        if right is not None:
            assert_same_bits(library.to_host(one), library.to_host(right))


def test_one_array_needs_no_tuple(library):
    a = library.asarray(square())
    out = like(library, a)
    assert linalg.cholesky_ex(a, out=out).factor is out


def test_some_results_are_enough(library):
    a = library.asarray(square())
    expected = linalg.eigh_ex(a)
    vectors = like(library, expected.eigenvectors)
    found = linalg.eigh_ex(a, out=(None, vectors))
    assert found.eigenvectors is vectors
    assert_same_bits(
        library.to_host(found.eigenvalues), library.to_host(expected.eigenvalues)
    )


def test_a_part_of_a_larger_array_receives_the_results(library):
    """By its strides; what lies between its elements stays as it is."""
    a = library.asarray(square())
    expected = library.to_host(linalg.cholesky_ex(a).factor)
    whole = library.asarray(np.full((2, 6, N, 2 * N), BEFORE))
    linalg.cholesky_ex(a, out=whole[:, ::-2, :, 1::2])
    host = library.to_host(whole)
    assert_same_bits(np.ascontiguousarray(host[:, ::-2, :, 1::2]), expected)
    assert (host[..., ::2] == BEFORE).all()
    assert (host[:, ::2] == BEFORE).all()


def test_failed_matrices_are_nan_there_too(library):
    stack = square()
    stack[0, 1, 0, 0] = -1
    a = library.asarray(stack)
    out = like(library, a)
    info = library.asarray(np.full(BATCH, -1, np.int32))
    linalg.cholesky_ex(a, out=out, info=info)
    bad = library.to_host(info) > 0
    assert bad.tolist() == [[False, True, False], [False] * 3]
    assert np.isnan(library.to_host(out)[bad]).all()
    assert np.isfinite(library.to_host(out)[~bad]).all()


@pytest.mark.parametrize("shape", [(0, 4, 4), (2, 0, 0)], ids=str)
def test_empty_stacks(library, shape):
    a = library.asarray(np.empty(shape))
    for function in (linalg.cholesky_ex, linalg.eigh_ex, linalg.svd_ex):
        *expected, _ = function(a)
        out = tuple(like(library, each) for each in expected)
        *found, _ = function(a, out=out)
        for one, receiver in zip(found, out, strict=True):
            assert one is receiver


@pytest.mark.parametrize(
    ("build", "fault"),
    [
        (lambda: np.empty((*BATCH, N, N), np.float32), "out has dtype float32, not"),
        (lambda: np.empty((*BATCH, N)), "out has shape"),
        (lambda: np.broadcast_to(np.zeros((N, N)), (*BATCH, N, N)), "read-only"),
        (lambda: as_strided(np.zeros(99), (*BATCH, N, N), (8,) * 4), "share memory"),
        (lambda: (np.empty((*BATCH, N, N)),) * 2, "out has 2 arrays; results: 1"),
    ],
)
def test_what_cannot_receive_is_refused(build, fault):
    with pytest.raises(ValueError, match=fault):
        linalg.cholesky_ex(square(), out=build())


def test_the_stack_s_own_memory_is_refused():
    """Inputs are never written."""
    a = square()
    before = a.copy()
    with pytest.raises(ValueError, match="overlaps the stack"):
        linalg.cholesky_ex(a, out=a)
    assert_same_bits(a, before)


def test_memory_for_two_results_is_refused():
    a = square()
    memory = np.full((*BATCH, N, N), BEFORE)
    with pytest.raises(ValueError, match=r"out\[1\] overlaps out\[0\]"):
        linalg.eigh_ex(a, out=(memory[..., 0], memory))
    info = memory.view(np.int32).reshape(-1)[:6].reshape(BATCH)
    with pytest.raises(ValueError, match="overlaps info"):
        linalg.eigh_ex(a, out=(None, memory), info=info)
    assert (memory == BEFORE).all()


def test_an_array_for_what_is_not_computed_is_refused():
    a = tall()
    u = np.empty((*BATCH, M, M))
    with pytest.raises(ValueError, match=r"out\[0\] is for a result that is not"):
        linalg.svd_ex(a, compute_uv=False, out=(u, None, None))


def test_arrays_of_other_libraries_are_refused():
    with pytest.raises(TypeError, match="out is a list, not a numpy array"):
        linalg.cholesky_ex(square(), out=[1.0])
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    with pytest.raises(TypeError, match="out= is for arrays"):
        linalg.cholesky_ex(da.ones((4, 2, 2)), out=np.zeros((4, 2, 2)))
