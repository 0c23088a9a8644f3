"""A run of the tuner: order, resumption, refinement, budget, and what is written."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pytest
import tune_cases
from tune_cases import CHOICES, SPEC, TARGET, by_work

from batchlas._select.testing import use_shipped_tables
from batchlas.tune import ledger, refine, tables
from batchlas.tune.grid import BATCHES, DTYPES, MOST_BYTES, ORDERS, cells
from batchlas.tune.session import Session

ORDERS_HERE, BATCHES_HERE = (2, 8, 32, 128), (1, 16, 256)


@pytest.fixture(autouse=True)
def _shipped_tables():
    yield
    use_shipped_tables()


class Shown:
    def __init__(self):
        self.texts = []

    def show(self, done, total, left_s, what):
        self.texts.append((done, total, left_s, what))

    def say(self, text):
        self.texts.append(text)


def grid(orders=ORDERS_HERE, batches=BATCHES_HERE, dtypes=("float64",)):
    return cells([SPEC], [TARGET], dtypes, orders, batches)


def session(path, *, cell_s=0.02, budget_s=1000.0):
    return Session(
        path, cell_s=cell_s, budget_s=budget_s, commit="1a2b3c4", shown=Shown()
    )


@pytest.fixture
def problem(monkeypatch):
    return tune_cases.install(monkeypatch, by_work)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.jsonl"


def best(record):
    return tables.ranked(record.times, [str(each) for each in CHOICES])[0]


@pytest.mark.usefixtures("problem")
def test_every_change_of_winner_has_a_row_on_both_sides(path):
    assert session(path).run(grid())
    records = ledger.read(path)
    along_n = [costly_changes(records, "n", "batch", batch) for batch in BATCHES_HERE]
    along_batch = [costly_changes(records, "batch", "n", n) for n in ORDERS_HERE]
    assert any(along_n)
    assert any(along_batch)
    for low, high in (pair for line in along_n for pair in line):
        assert high - low == 1 or high / low < refine.CLOSE_SIZES
    for low, high in (pair for line in along_batch for pair in line):
        assert high / low <= refine.CLOSE_BATCHES
    assert len(records) > len(grid())


def costly_changes(records, along, fixed, value):
    """Return the sizes on both sides of each change of winner that matters."""
    line = sorted(
        (each for each in records if each.key[fixed] == value),
        key=lambda each: each.key[along],
    )
    return [
        (one.key[along], other.key[along])
        for one, other in pairwise(line)
        if max(loss(one, other), loss(other, one)) > refine.MATTERS
    ]


def loss(here, there):
    return here.times[best(there)] / here.times[best(here)]


@pytest.mark.usefixtures("problem")
def test_where_one_candidate_always_wins_nothing_is_refined(path, monkeypatch):
    tune_cases.install(
        monkeypatch, lambda choice, call: 2.0 if choice.name == "lane" else 1.0
    )
    session(path).run(grid())
    assert len(ledger.read(path)) == len(grid())


def test_a_second_run_has_nothing_to_measure(path, problem):
    session(path).run(grid())
    lines = path.read_text().splitlines()
    problem.runs.clear()
    assert session(path).run(grid())
    assert problem.runs == []
    assert path.read_text().splitlines() == lines


def test_the_forecast_grows_with_the_work_and_stays_in_its_group(path, problem):
    session(path).run(grid(orders=(2, 4), batches=(1, 16)))
    run = session(path)
    (asked,) = grid(orders=(64,), batches=(16,))
    here = next(
        record
        for record in ledger.read(path)
        if (record.key["n"], record.key["batch"]) == (4, 16)
    )
    forecast = run._forecast(asked)
    assert forecast == {
        name: ms * 16**3 for name, ms in here.times.items() if ms is not None
    }
    (smaller,) = grid(orders=(1,), batches=(1,))
    (other,) = grid(orders=(64,), batches=(16,), dtypes=("float32",))
    assert run._forecast(smaller) == run._forecast(other) == {}


def test_a_gpu_takes_more_matrices_in_the_time_of_one(path, problem):
    session(path).run(grid(orders=(2,), batches=(1, 16)))
    times = {record.key["batch"]: record.times for record in ledger.read(path)}
    (asked,) = grid(orders=(2,), batches=(256,))
    gpu = replace(TARGET, device=replace(TARGET.device, is_gpu=True))
    forecast = session(path)._forecast(replace(asked, target=gpu))
    assert forecast == {n: ms for n, ms in times[16].items() if ms is not None}
    (fewer,) = grid(orders=(64,), batches=(4,))
    forecast = session(path)._forecast(replace(fewer, target=gpu))
    assert forecast == {n: ms for n, ms in times[1].items() if ms is not None}


def test_an_interrupted_run_goes_on_where_it_stopped(path, problem, monkeypatch):
    whole = path.with_name("whole.jsonl")
    session(whole).run(grid())
    add, left = Session._add, iter(range(5))

    def interrupted(self, cell):
        if next(left, None) is None:
            raise KeyboardInterrupt
        add(self, cell)

    monkeypatch.setattr(Session, "_add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session(path).run(grid())
    with path.open("a") as file:
        file.write('{"op": "potrf", "device": "cpu_av')  # cut short while writing
    monkeypatch.setattr(Session, "_add", add)
    assert session(path).run(grid())
    names = [record.cell for record in ledger.read(path)]
    assert set(names) == {record.cell for record in ledger.read(whole)}
    assert len(path.read_text().splitlines()) == len(names) + 1  # the torn one


@pytest.mark.usefixtures("problem")
def test_no_time_at_all_measures_nothing_and_says_so(path):
    run = session(path, budget_s=0)
    assert not run.run(grid())
    coarse = [cell for cell in grid() if cell.level <= 1]
    assert run._shown.texts == [f"time is up: {len(coarse)} shapes remain"]
    coarsest = [cell for cell in grid() if cell.level == 0]
    assert len(run.uncovered(grid())) == len(coarsest) > 0


@pytest.mark.usefixtures("problem")
def test_a_better_measurement_is_never_replaced_by_a_cheaper_one(path):
    session(path, cell_s=0.05).run(grid())
    before = path.read_text()
    session(path, cell_s=0.01).run(grid())
    assert path.read_text() == before
    session(path, cell_s=0.08).run(grid())
    assert {record.fidelity for record in ledger.read(path)} == {80}


def test_a_new_candidate_is_measured_at_the_old_worth(path, problem):
    session(path, cell_s=0.05).run(grid((8,), (16,)))
    (record,) = ledger.read(path)
    old = ledger.Record(**{**json.loads(path.read_text()), "times": {"vendor": 1.0}})
    path.unlink()
    ledger.append(path, old)
    problem.runs.clear()
    session(path, cell_s=0.01).run(grid((8,), (16,)))
    (record,) = ledger.read(path)
    assert set(record.times) == {str(c) for c in CHOICES if c.name != "broken"}
    assert record.fidelity == 50


def test_what_other_kernels_measured_is_measured_again_and_last(path, problem):
    session(path).run(grid((8, 32), (1,)))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    stale = {**lines[0], "kernels": "00000000", "fidelity": 9999}
    path.write_text(json.dumps(stale) + "\n")
    problem.runs.clear()
    session(path).run(grid((8, 32), (1,)))
    after = [json.loads(line) for line in path.read_text().splitlines()]
    assert after[-1]["key"] == stale["key"]
    assert all(record.is_current for record in ledger.read(path))


@pytest.mark.usefixtures("problem")
def test_the_coarse_grid_is_refined_before_the_fine_one_is_measured(path):
    session(path).run(grid(orders=(2, 3, 8, 32, 128)))
    shapes = [(r.key["n"], r.key["batch"]) for r in ledger.read(path)]
    fine = [shapes.index((3, batch)) for batch in BATCHES_HERE]
    of_grid = [shapes.index((n, 16)) for n in ORDERS_HERE]
    refined = [
        place
        for place, (n, batch) in enumerate(shapes)
        if n not in (2, 3, 8, 32, 128) and batch in (1, 16)
    ]
    assert max(of_grid) < min(refined) < max(refined) < max(fine)


def test_the_coarse_grid_of_every_group_comes_first():
    todo = cells([SPEC], [TARGET], DTYPES, ORDERS, BATCHES)
    levels = [cell.level for cell in todo]
    assert levels == sorted(levels)
    coarse = [cell for cell in todo if cell.level == 0]
    turns = [cell.call.dtype for cell in coarse[: 2 * len(DTYPES)]]
    assert turns == [*DTYPES, *DTYPES]


def test_the_grid_spans_what_it_should_and_no_point_is_too_large():
    todo = cells([SPEC], [TARGET], ("complex128",), ORDERS, BATCHES)
    assert {1, 1024} <= {cell.call.n for cell in todo}
    assert {1, 65536} <= {cell.call.batch for cell in todo}
    sizes = [16 * cell.call.n**2 * cell.call.batch for cell in todo]
    assert MOST_BYTES / 4 < max(sizes) <= MOST_BYTES
    gpu = replace(TARGET, device=replace(TARGET.device, is_gpu=True))
    more = cells([SPEC], [gpu], ("complex128",), ORDERS, BATCHES)
    assert max(16 * cell.call.n**2 * cell.call.batch for cell in more) > MOST_BYTES
    for low, high in ((8, 9), (16, 17), (32, 33), (64, 65)):
        assert {low, high} <= set(ORDERS)


def test_the_grid_of_the_svd_has_every_job_and_aspect_once():
    from batchlas._ops import gesvd

    todo = cells([gesvd.SPEC], [TARGET], ("float64",))
    kinds = {(cell.call.vec, cell.group[-2:]) for cell in todo}
    square, others = (1, 1), ((4, 1), (1, 4))
    assert kinds == {
        *(("all", square), ("none", square)),
        *((vec, each) for vec in ("all", "thin", "none") for each in others),
    }
    assert len({cell.call for cell in todo}) == len(todo)


def test_time_left_falls_and_is_no_more_than_the_budget(path, problem):
    run = session(path, budget_s=1000)
    run.run(grid())
    shown = [each for each in run._shown.texts if isinstance(each, tuple)]
    assert shown[0][:2] == (0, sum(cell.level <= 1 for cell in grid()))
    assert all(0 <= left <= 1000 for _, _, left, _ in shown)
    assert "potrf float64 numpy L n=" in shown[0][3]
    assert problem.runs
