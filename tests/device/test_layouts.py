"""Arrays in every memory layout: right results, and inputs left as they were."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS, CHOLESKY
from checks import assert_same_bits
from families import DTYPES, definite

# How a contiguous (6, 4, 3, 3) array is seen, and the same for any library.
VIEWS = {
    "reversed": lambda a: a[::-1],
    "reversed-matrix-axes": lambda a: a[..., ::-1, ::-1],
    "every-second": lambda a: a[::2],
    "every-third-of-second-axis": lambda a: a[:, ::3],
    "step-minus-two": lambda a: a[::-2, ::-1],
    "transposed-batch": lambda a: a.transpose(1, 0, 2, 3),
    "transposed-matrices": lambda a: a.transpose(0, 1, 3, 2),
    "all-axes-reversed": lambda a: a.transpose(3, 2, 1, 0).transpose(3, 2, 1, 0),
    "batch-axis-last": lambda a: a.transpose(1, 2, 3, 0).transpose(3, 0, 1, 2),
    "one-matrix": lambda a: a[2, 1],
    "new-axis": lambda a: a[:, None, 0],
    "last-of-allocation": lambda a: a[-1:],
}


def in_order(library, array, order):
    """Return an array in C or Fortran order.

    Through a transpose, since dpctl 0.17 can abort when it copies into Fortran order.
    """
    if order == "C":
        return library.asarray(array)
    axes = tuple(range(array.ndim))[::-1]
    result = library.asarray(np.ascontiguousarray(array.T)).transpose(axes)
    assert result.flags.f_contiguous
    return result


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_is_computed_like_its_copy(library, view, call):
    stack = definite(6, 4, 3, 3)
    expected = call.on_host(library.asarray(np.ascontiguousarray(view(stack))))
    found = call.on_host(view(library.asarray(stack)))
    for one, other in zip(found, expected, strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_are_not_written(library, order, dtype, call):
    """Of all the memory under a strided view, not of its own elements only."""
    whole = definite(4, 6, 6, dtype=dtype)
    array = in_order(library, whole, order)
    view = array[1:, :5, :5]
    call(view)
    call(array)
    assert_same_bits(library.to_host(array), whole)


@pytest.mark.parametrize("call", CHOLESKY, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_other_triangle_is_zero_whatever_lies_around(library, dtype, call):
    """133, 135: the named triangle of each matrix, by its own strides.

    What lies between the matrices and in the other triangle is finite, so that reading
    it would change the result and writing it would show.
    """
    n = 3
    whole = np.full((4, n + 2, 2 * n), -999, dtype)
    matrices = definite(4, n, n, dtype=dtype)
    whole[:, :n, ::2] = matrices
    upper = call.options.get("upper", False)
    other = np.tril_indices(n, -1) if upper else np.triu_indices(n, 1)
    whole[:, other[0], 2 * other[1]] = 777
    array = library.asarray(whole)
    (factor,) = call.on_host(array[:, :n, ::2])
    (expected,) = call.on_host(library.asarray(matrices))
    assert_same_bits(factor, expected)
    assert not factor[:, other[0], other[1]].any()
    assert_same_bits(library.to_host(array), whole)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_a_broadcast_matrix(library, call):
    """Stride 0: every result is that of the one matrix."""
    matrix = definite(3, 3)
    broadcast = library.xp.broadcast_to(library.asarray(matrix), (4, 2, 3, 3))
    expected = call.on_host(library.asarray(np.tile(matrix, (4, 2, 1, 1))))
    for one, other in zip(call.on_host(broadcast), expected, strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_fortran_order(library, call):
    stack = definite(5, 4, 4)
    array = in_order(library, stack, "F")
    expected = call.on_host(library.asarray(stack))
    for one, other in zip(call.on_host(array), expected, strict=True):
        assert_same_bits(one, other)


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_results_are_arrays_of_the_same_library(library, call):
    for result in call(library.asarray(definite(5, 4, 4))):
        assert library.owns(result)


@pytest.mark.parametrize("call", CHOLESKY, ids=str)
@pytest.mark.parametrize("order", ["C", "F"])
def test_factors_are_contiguous(library, order, call):
    (factor,) = call(in_order(library, definite(5, 4, 4), order))
    assert factor.flags.c_contiguous


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("batch", [(), (1,), (2, 3), (1, 1, 4)], ids=str)
def test_any_number_of_batch_axes(library, batch, call):
    """A stack is nothing but its matrices, however many axes they are laid out on."""
    stack = definite(*batch, 4, 4)
    matrices = stack.reshape(-1, 4, 4)
    found = call.on_host(library.asarray(stack))
    expected = call.on_host(library.asarray(matrices))
    for one, other in zip(found, expected, strict=True):
        assert one.shape[: len(batch)] == batch
        assert_same_bits(one.reshape(other.shape), other)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("n", [1, 2, 7, 33])
def test_a_stack_is_computed_like_its_matrices(library, n, call):
    """Beside copies of itself, since another batch may take another kernel."""
    stack = definite(3, n, n)
    array = library.asarray(stack)
    found = call.on_host(array)
    for index in (0, 2):
        copies = np.repeat(stack[index : index + 1], len(stack), axis=0)
        expected = call.on_host(library.asarray(copies))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one[index], other[1], rtol=1e-9, atol=1e-9 * n)


@pytest.mark.parametrize("call", [CALLS[0], CALLS[4]], ids=str)
def test_more_matrices_than_16_bits_count(library, call):
    """Launch grids and vendor routines have had limits of 65,535.

    Not for svd: oneMKL's takes one matrix at a time, which lasts half a minute.
    """
    stack = np.tile(definite(16, 2, 2), (4100, 1, 1))
    assert len(stack) > 65_535
    found = call.on_host(library.asarray(stack))[0]
    expected = call.on_host(library.asarray(stack[:16]))[0]
    np.testing.assert_allclose(found, np.resize(expected, found.shape), rtol=1e-12)
