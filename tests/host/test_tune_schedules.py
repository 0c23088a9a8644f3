"""The search over schedules: what is legal, what is a candidate, what comes out."""

from __future__ import annotations

import pytest

from batchlas._ops import SPECS
from batchlas._select.inventory import DTYPES
from batchlas.tune.grid import MOST_BYTES, ORDERS, saturating
from batchlas.tune.schedules import search_lines
from batchlas.tune.searchable import SEARCHABLE

BY_OP = {spec.op: spec for spec in SPECS}


def legal_choices(op, n, dtype):
    """Return the spellings of every legal knob value of an op's families."""
    return [
        each.spelling(amount)
        for each in SEARCHABLE
        if each.op == op
        for amount, _ in each.schedulers(n, dtype)
    ]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("searchable", SEARCHABLE, ids=lambda each: each.family)
def test_every_candidate_with_a_knob_is_a_legal_schedule(searchable, dtype):
    """At an order that all of them have the memory for."""
    spec = BY_OP[searchable.op]
    mine = {
        str(each)
        for kind in ("numpy", "dpnp")
        for each in spec.candidates(dtype, kind)
        if each.name == searchable.family
    }
    assert mine
    mine = {each for each in mine if each.endswith(searchable.rest)}
    assert mine <= set(legal_choices(searchable.op, 8, dtype))


def test_legal_values_are_what_the_target_has():
    assert legal_choices("potrf", 8, "float64") == [
        f"lane:width={width}:ahead=1" for width in (2, 4, 8, 16)
    ]
    assert legal_choices("syev", 8, "float64") == []


def test_what_does_not_fit_in_memory_is_pruned():
    assert legal_choices("potrf", 160, "float64") == [
        "lane:width=2:ahead=1",
        "lane:width=4:ahead=1",
    ]


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_saturating_batch_fits(dtype):
    for n in ORDERS:
        batch = saturating(n, dtype)
        assert batch & (batch - 1) == 0
        if n < 512:
            assert n * n * batch * 4 <= MOST_BYTES


def test_a_search_finds_right_schedules_and_marks_candidates():
    from batchlas._runtime.sycl import host_queue

    queue = host_queue()
    if queue is None:
        pytest.skip("no SYCL CPU device")
    from batchlas._ops.potrf import PotrfCall

    call = PotrfCall("float64", "numpy", "L", 2, 64)
    candidates = ("lane:width=4:ahead=1", "lane:width=8:ahead=1")
    head, *lines = search_lines("potrf", call, queue, candidates, 60.0)
    assert head == "potrf float64 n=2 batch=64: 4 schedules"
    for line in lines:
        assert "split:0:" in line
        assert ("not a candidate" in line) != any(name in line for name in candidates)


def test_a_wrong_schedule_is_not_told(monkeypatch):
    from batchlas._ops.potrf import PotrfCall
    from batchlas._runtime.sycl import host_queue
    from batchlas.tune import schedules

    queue = host_queue()
    if queue is None:
        pytest.skip("no SYCL CPU device")
    monkeypatch.setattr(schedules, "is_right", lambda *_: False)
    call = PotrfCall("float64", "numpy", "L", 2, 64)
    assert list(search_lines("potrf", call, queue, (), 60.0)) == [
        "potrf float64 n=2 batch=64: 0 schedules"
    ]
