"""Where elements lie, against NumPy's exact answers: statements 129 and 132."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from batchlas._backends.numpy import extent
from batchlas._runtime.layout import Extent

WHOLE = np.zeros((6, 4, 4), np.int32)
VIEWS = {
    "whole": WHOLE,
    "slice": WHOLE[1:3, :3, 1:],
    "reversed": WHOLE[::-1, :, ::-2],
    "fortran": WHOLE.T,
    "one": WHOLE[2, 1, 3:4].reshape(()),
    "empty": WHOLE[:0],
    "column": WHOLE[:, :, 1],
}


@pytest.mark.parametrize("a", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("b", VIEWS.values(), ids=VIEWS)
def test_bounds_overlap_as_numpy_says(a, b):
    assert extent(a).may_overlap(extent(b)) == np.may_share_memory(a, b)


@pytest.mark.parametrize("a", VIEWS.values(), ids=VIEWS)
def test_views_do_not_overlap_themselves(a):
    assert not extent(a).may_overlap_itself()


def test_a_broadcast_array_overlaps_itself():
    assert extent(np.broadcast_to(WHOLE[0], (2, 4, 4))).may_overlap_itself()
    assert extent(as_strided(WHOLE, (3, 3), (4, 4))).may_overlap_itself()
    assert extent(as_strided(WHOLE, (2, 2), (2, 64))).may_overlap_itself()
    assert not extent(np.broadcast_to(WHOLE[0], (1, 4, 4))).may_overlap_itself()


axes = st.lists(st.tuples(st.integers(0, 3), st.integers(-6, 6)), max_size=3)


@given(axes)
def test_no_overlap_is_missed(axes):
    """Elements that share a byte are always found; some layouts are refused in vain."""
    shape, strides = tuple(n for n, _ in axes), tuple(s for _, s in axes)
    indices = itertools.product(*map(range, shape))
    starts = [sum(map(operator.mul, index, strides)) for index in indices]
    taken = [start + byte for start in starts for byte in range(4)]
    shares = len(set(taken)) < len(taken)
    found = Extent(100, shape, strides, 4)
    assert found.may_overlap_itself() or not shares
    if taken:
        assert found.bounds() == (100 + min(taken), 101 + max(taken))
