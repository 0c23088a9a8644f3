"""One cell: who is timed, who is dropped and why, on a clock that the test rules."""

from __future__ import annotations

import numpy as np
import pytest
import tune_cases
from tune_cases import CHOICES, Broken, Lane, Vendor, by_work, cell

from batchlas._select.testing import use_shipped_tables
from batchlas.tune.timing import SLOW, time_cell


@pytest.fixture(autouse=True)
def _shipped_tables():
    yield
    use_shipped_tables()


def test_times_are_the_clocks_and_a_wrong_result_has_none(monkeypatch):
    tune_cases.install(monkeypatch, by_work)
    timed = [each for each in CHOICES if each != Broken()]
    result = time_cell(cell(n=16, batch=256), timed)
    work = 16**2 * 256
    assert result.times["vendor"] == pytest.approx(0.01 + 1e-4 * work)
    assert result.times["lane:width=4"] == pytest.approx(0.05 + 2e-5 * work)
    assert result.times["wrong"] is None
    assert result.notes == {"wrong": "wrong result"}


def test_a_hopeless_candidate_runs_a_part_of_the_batch_and_is_dropped(monkeypatch):
    """Lane is first by expectation; the vendor takes over 10 times as long."""
    problem = tune_cases.install(
        monkeypatch,
        lambda choice, call: call.batch * (1.0 if choice.name == "lane" else 200.0),
    )
    result = time_cell(
        cell(batch=160), (Vendor(), Lane(4)), expected={"lane:width=4": 1.0}
    )
    assert result.times["vendor"] is None
    assert result.notes["vendor"].startswith(SLOW)
    assert {part for name, part in problem.runs if name == "vendor"} == {10}
    assert result.times["lane:width=4"] == pytest.approx(160)


def test_a_slow_candidate_that_had_to_run_keeps_its_time(monkeypatch):
    tune_cases.install(
        monkeypatch, lambda choice, _call: 1.0 if choice.name == "lane" else 50.0
    )
    result = time_cell(cell(batch=1), (Vendor(), Lane(4)))
    assert result.times["vendor"] == pytest.approx(50.0)
    assert result.notes == {}


def test_what_would_take_minutes_by_a_smaller_shape_is_not_run(monkeypatch):
    problem = tune_cases.install(monkeypatch, lambda _choice, _call: 1.0)
    result = time_cell(
        cell(batch=1),
        (Vendor(), Lane(4), Lane(8)),
        expected={"vendor": 1.0},
        forecast={"lane:width=4": 9e4, "lane:width=8": 900.0, "vendor": 9e4},
    )
    assert result.times["lane:width=4"] is None
    assert result.notes["lane:width=4"].startswith(SLOW)
    assert {name for name, _ in problem.runs} == {"vendor", "lane:width=8"}


def test_a_candidate_that_raises_does_not_end_the_run(monkeypatch):
    def cost(choice, _call):
        if choice == Lane(8):
            raise RuntimeError("out of registers")
        return 1.0

    tune_cases.install(monkeypatch, cost)
    result = time_cell(cell(), (Lane(4), Lane(8), Vendor()))
    assert result.notes == {"lane:width=8": "RuntimeError: out of registers"}
    assert result.times["lane:width=8"] is None
    assert result.times["lane:width=4"] == pytest.approx(1.0)


def test_short_calls_are_timed_in_loops(monkeypatch):
    problem = tune_cases.install(monkeypatch, lambda _choice, _call: 0.01)
    result = time_cell(cell(batch=1), (Vendor(),), budget_s=0.01)
    assert result.times["vendor"] == pytest.approx(0.01)
    # 0.3 ms a sample, with one call more that does not count: nearly all are timed
    assert len(problem.runs) >= 1000


def test_a_first_call_that_compiles_does_not_count(monkeypatch):
    seen = set()

    def cost(choice, _call):
        first = choice not in seen
        seen.add(choice)
        return 500.0 if first else 1.0

    tune_cases.install(monkeypatch, cost)
    result = time_cell(cell(batch=1), (Lane(4), Vendor()))
    assert list(result.times.values()) == pytest.approx([1.0, 1.0])


def test_one_disturbed_call_does_not_move_the_median(monkeypatch):
    calls = iter(range(10**6))
    tune_cases.install(monkeypatch, lambda *_: 30.0 if next(calls) % 10 == 9 else 1.0)
    result = time_cell(cell(batch=1), (Vendor(),), budget_s=0.5)
    assert result.times["vendor"] == pytest.approx(1.0)


def test_a_real_cell():
    """The candidates of this machine's own Cholesky, all right at a tiny shape."""
    from batchlas._ops import potrf
    from batchlas.tune.grid import Cell
    from batchlas.tune.session import candidates
    from batchlas.tune.targets import targets

    call = potrf.PotrfCall("float64", "numpy", "L", 4, 40)
    asked = Cell(potrf.SPEC, targets()[0], call)
    result = time_cell(asked, candidates(asked), budget_s=0.01)
    assert all(why.startswith(SLOW) for why in result.notes.values())
    assert set(result.times) == {str(each) for each in candidates(asked)}
    times = [ms for ms in result.times.values() if ms is not None]
    assert times
    assert all(np.isfinite(ms) and ms > 0 for ms in times)
