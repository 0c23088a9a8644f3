"""The ledger, and what becomes of it in a table."""

from __future__ import annotations

import multiprocessing

import pytest

from batchlas._ops import potrf
from batchlas._select.sources import kernels_hash
from batchlas._select.table_parser import parse_tables
from batchlas.tune import ledger, tables
from batchlas.tune.times import duration, seconds

KEY = {"dtype": "float64", "array": "numpy", "uplo": "L", "n": 8, "batch": 64}
NOW = kernels_hash("potrf", "cpu_avx512")


def record(ms=1.0, *, fidelity=100, kernels=NOW, times=None, **key):
    times = {"vendor": ms} if times is None else times
    return ledger.Record(
        "potrf", "cpu_avx512", {**KEY, **key}, times, fidelity, kernels
    )


@pytest.mark.parametrize(
    ("old", "new", "wins"),
    [
        (record(1.0), record(2.0), "new"),
        (record(1.0, fidelity=200), record(2.0), "old"),
        (record(1.0), record(2.0, fidelity=200), "new"),
        (record(1.0, fidelity=900, kernels="00000000"), record(2.0), "new"),
        (record(1.0, fidelity=900, kernels="1111aaaa"), record(2.0), "new"),
        (record(1.0, fidelity=900), record(2.0, kernels="00000000"), "new"),
    ],
)
def test_which_of_two_counts(old, new, wins):
    (kept,) = ledger.in_force([old, new])
    assert kept is (new if wins == "new" else old)


def test_records_come_back_as_they_were(tmp_path):
    path = tmp_path / "sub" / "ledger.jsonl"
    written = [
        record(n=n, times={"vendor": 1.5, "lane:width=4:ahead=1": None}) for n in (1, 2)
    ]
    for each in written:
        ledger.append(path, each)
    assert ledger.read(path) == written
    assert ledger.read(tmp_path / "none.jsonl") == []


def test_a_torn_line_harms_neither_neighbour(tmp_path):
    path = tmp_path / "ledger.jsonl"
    ledger.append(path, record(n=1))
    with path.open("a") as file:
        file.write('{"op": "po')
    ledger.append(path, record(n=2))
    ledger.append(path, record(n=3))
    assert [each.key["n"] for each in ledger.read(path)] == [1, 2, 3]


def test_a_ledger_of_before_is_read():
    """Records had no notes and no commit once."""
    old = ledger.Record("potrf", "sm_90", KEY, {"vendor": 1.0}, 30, "70b1c6fc")
    assert (old.notes, old.commit) == ({}, "")


def _hold(path, ready, done):
    with ledger.held(path):
        ready.set()
        done.wait(30)


def test_two_tuners_do_not_measure_into_one_ledger(tmp_path):
    path = tmp_path / "ledger.jsonl"
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(path, ready, done))
    other.start()
    try:
        assert ready.wait(60)
        with pytest.raises(RuntimeError, match="another tuner"), ledger.held(path):
            pass
    finally:
        done.set()
        other.join()
    with ledger.held(path):
        pass


ORDER = ("lane:width=4:ahead=1", "lane:width=8:ahead=1", "vendor", "threads")


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((1.0, 2.0, 3.0), [0, 1, 2]),
        ((3.0, 2.0, 1.0), [2, 1, 0]),
        ((1.029, 2.0, 1.0), [0, 2, 1]),  # a near tie goes to the earlier candidate
        ((1.031, 2.0, 1.0), [2, 0, 1]),
        ((None, 2.0, 1.0), [2, 1]),
    ],
)
def test_ranking(times, expected):
    by_name = dict(zip(ORDER, times, strict=False))
    assert tables.ranked(by_name, ORDER) == [ORDER[place] for place in expected]


def test_what_is_no_candidate_any_more_is_left_out():
    assert tables.ranked({"gone": 0.1, "vendor": 1.0}, ORDER) == ["vendor"]


def test_the_tie_rule_is_the_traces():
    from batchlas._select import trace

    assert tables.TIE == trace.TIE_RATIO


def test_a_table_has_its_provenance_and_parses():
    records = [
        record(n=n, times={"vendor": 2.0, "lane:width=4:ahead=1": 1.0}) for n in (8, 2)
    ]
    text = tables.table_text(potrf.SPEC, "cpu_avx512", records)
    table = parse_tables("potrf.cpu_avx512.txt", text)["float64"]
    assert [row.log for row in table.rows] == [(2, 64), (8, 64)]
    assert table.facts["kernels"] == NOW
    assert table.facts["source"] == "measured"
    entries = [(entry.spelling, entry.ms) for entry in table.rows[0].entries]
    assert entries == [("lane:width=4:ahead=1", 1.0), ("vendor", 2.0)]


def test_the_oldest_row_says_how_stale_the_table_is():
    old = [record(n=n, kernels="00000000") for n in (2, 3)]
    text = tables.table_text(
        potrf.SPEC, "cpu_avx512", ledger.in_force([*old, record(n=2), record(n=4)])
    )
    assert "kernels=00000000" in text.splitlines()[0]


def test_a_table_does_not_depend_on_the_sources_of_today(monkeypatch):
    """The shipped tables are derived again after the kernels have changed."""
    written = [
        record(1.0, fidelity=900, kernels="1111aaaa"),
        record(2.0, fidelity=100, kernels="2222aaaa"),
        record(3.0, n=4, kernels="1111aaaa"),
    ]
    texts = set()
    for now in ("1111aaaa", "2222aaaa", "3333aaaa"):
        monkeypatch.setattr(ledger, "kernels_hash", lambda *_, now=now: now)
        records = ledger.in_force(written)
        texts.add(tables.table_text(potrf.SPEC, "cpu_avx512", records))
    assert len(texts) == 1


def test_nothing_measured_is_no_table():
    assert tables.table_text(potrf.SPEC, "cpu_avx512", []) == ""
    failed = [record(times={"vendor": None})]
    assert tables.table_text(potrf.SPEC, "cpu_avx512", failed) == ""


@pytest.mark.parametrize(
    ("text", "value"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400), ("0", 0)]
)
def test_lengths_of_time_are_read(text, value):
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "m", "-5", "10d", "1e999", "nan"])
def test_what_is_no_length_of_time(text):
    with pytest.raises(ValueError, match=r".+"):
        seconds(text)


@pytest.mark.parametrize(
    ("value", "text"), [(5.2, "5s"), (65, "1m05s"), (7260, "2h01m"), (-1, "0s")]
)
def test_lengths_of_time_are_written(value, text):
    assert duration(value) == text
