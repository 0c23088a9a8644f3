"""Kept result memory: used again only when no array is left on it, and bounded."""

from __future__ import annotations

import gc

import pytest

from batchlas._runtime import reuse
from batchlas._runtime.reuse import MOST_KEPT_BYTES, SMALLEST_BYTES, reused_bytes


@pytest.fixture(autouse=True)
def _empty_pool(monkeypatch):
    monkeypatch.setattr(reuse, "_pool", reuse._Pool())


def test_memory_of_a_dropped_array_comes_again():
    first = reused_bytes(SMALLEST_BYTES)
    address = first.ctypes.data
    del first
    gc.collect()
    assert reused_bytes(SMALLEST_BYTES).ctypes.data == address


def test_kept_memory_is_handed_out_once():
    first = reused_bytes(SMALLEST_BYTES)
    del first
    gc.collect()
    again, other = reused_bytes(SMALLEST_BYTES), reused_bytes(SMALLEST_BYTES)
    assert again.ctypes.data != other.ctypes.data


def test_a_view_keeps_its_memory():
    first = reused_bytes(SMALLEST_BYTES)
    view = first[10:20]
    view[:] = 7
    del first
    gc.collect()
    other = reused_bytes(SMALLEST_BYTES)
    other[:] = 9
    assert (view == 7).all()


def test_no_more_than_the_limit_is_kept():
    arrays = [reused_bytes(MOST_KEPT_BYTES // 4) for _ in range(8)]
    arrays.clear()
    gc.collect()
    kept = sum(block.size for block in reuse._pool._blocks)
    assert 0 < kept <= MOST_KEPT_BYTES


def test_much_larger_memory_is_not_handed_out():
    large = reused_bytes(4 * SMALLEST_BYTES)
    address = large.ctypes.data
    del large
    gc.collect()
    assert reused_bytes(SMALLEST_BYTES).ctypes.data != address
    assert reused_bytes(4 * SMALLEST_BYTES).ctypes.data == address
