"""Layouts that only NumPy arrays have, for the automatic choice and each family."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS
from checks import assert_same_bits
from families import definite

import batchlas

ROUTES = ("auto", "vendor", "threads")


@pytest.fixture(params=ROUTES)
def _route(request):
    names = ("POTRF", "SYEV", "GESVD")
    pins = {f"BATCHLAS_{name}_ROUTE": request.param for name in names}
    with batchlas.scoped_env(**pins):
        yield


def read_only(a):
    a.flags.writeable = False
    return a


def misaligned(a):
    memory = np.empty(a.nbytes + 1, np.uint8)
    view = memory[1:].view(a.dtype).reshape(a.shape)
    view[...] = a
    assert not view.flags.aligned
    return view


def windows(a):
    """Return 3x3 windows that share elements with one another."""
    return np.lib.stride_tricks.sliding_window_view(a[0], (3, 3))


LAYOUTS = {
    "read-only": read_only,
    "byte-swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "byte-swapped-reversed": lambda a: a.astype(a.dtype.newbyteorder())[::-1],
    "misaligned": misaligned,
    "overlapping": windows,
    "stride-zero-matrix": lambda a: np.broadcast_to(a[:, :1, :1], a.shape),
    "stride-zero-batch": lambda a: np.broadcast_to(a[0], (4, *a.shape[1:])),
    "negative-all": lambda a: a[::-1, ::-1, ::-1],
    "field-of-records": lambda a: a.view([("x", a.dtype)])["x"],
    "real-part": lambda a: (a + 1j).real,
    "fortran": np.asfortranarray,
}


@pytest.mark.usefixtures("_route")
@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_layout_is_computed_like_its_copy(layout, call):
    view = layout(definite(6, 5, 5) + 50 * np.eye(5))
    before = view.copy()
    plain = np.array(view, dtype=view.dtype.newbyteorder("="), order="C")
    with batchlas.errstate(linalg="nan"):  # not all layouts leave a matrix definite
        found, expected = call(view), call(plain)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype.isnative
        assert_same_bits(one, other)
    np.testing.assert_array_equal(view, before)


@pytest.mark.usefixtures("_route")
@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_gaps_of_a_strided_view_do_not_matter(call):
    stack = definite(4, 3, 3)
    whole = np.full((8, 3, 7), np.nan)
    view = whole[::2, :, 1::2]
    view[...] = stack
    for one, other in zip(call(view), call(stack), strict=True):
        assert_same_bits(one, other)
    assert np.isnan(whole).sum() == whole.size - stack.size


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_results_own_their_memory(call):
    stack = definite(4, 3, 3)
    results = call(stack)
    for result in results:
        assert not np.shares_memory(result, stack)
        assert result.flags.writeable
    for one, other in zip(results, call(stack), strict=True):
        assert not np.shares_memory(one, other)
