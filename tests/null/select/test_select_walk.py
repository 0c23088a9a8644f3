"""The automatic choice, step by step."""

import warnings
from dataclasses import replace
from typing import NamedTuple

import pytest
from select_cases import (
    CPU,
    POTRF,
    SM_90,
    Blocked,
    Cta,
    Lpanel,
    Tiny,
    Vendor,
    call,
    gpu,
    op_spec,
    row,
    table,
)

from batchlas._select import decide, pick
from batchlas._select.testing import reset_warnings, set_builtin_tables
from batchlas._select.walk import Origin, Step, Verdict, last_resort_order
from batchlas.exceptions import BorrowedTableWarning, NoRouteError

FILE = "potrf.sm_90.txt"
SM_89 = gpu("sm_89", "sm", 89)
NO_VENDOR = replace(SM_90, has_vendor=False)


def test_the_first_entry_wins_whatever_the_tie_order():
    set_builtin_tables({FILE: table(row("lpanel:8 1 | tiny 2 | vendor 3"))})
    decision = decide(POTRF, call(), SM_90)
    assert (decision.choice, decision.origin) == (Lpanel(8), Origin.OWN)
    assert (decision.table.table.device, decision.row.line) == ("sm_90", 3)


def test_what_cannot_run_or_is_no_candidate_is_skipped():
    ranking = "tiny 1 | lpanel:16 2 | lpanel:8 3 | cta 4 | vendor 5"
    set_builtin_tables({FILE: table(row(ranking, n=64, uplo="U"))})
    decision = decide(POTRF, call(n=64, uplo="U"), SM_90)
    assert decision.choice == Cta()
    assert decision.steps == (
        Step(FILE, 3, Tiny(), 1.0, Verdict.CANNOT_RUN),
        Step(FILE, 3, Lpanel(16), 2.0, Verdict.NO_CANDIDATE),
        Step(FILE, 3, Lpanel(8), 3.0, Verdict.CANNOT_RUN),
        Step(FILE, 3, Cta(), 4.0, Verdict.CHOSEN),
        Step(FILE, 3, Vendor(), 5.0, Verdict.RUNS),
    )
    assert decision.chosen.choice == Cta()
    assert decision.runner_up.choice == Vendor()


def test_a_candidate_depends_on_the_dtype():
    set_builtin_tables(
        {FILE: table(*(row("lpanel:16 1", dtype=d) for d in ("float32", "float64")))}
    )
    assert pick(POTRF, call(dtype="float32"), SM_90) == Lpanel(16)
    assert decide(POTRF, call(), SM_90).origin is Origin.LAST_RESORT


def test_a_borrowing_device_warns_once_per_op_and_device():
    set_builtin_tables(
        {
            FILE: table(row("tiny 1"), row("tiny 1", dtype="float32")),
            "posv.sm_90.txt": table(row("tiny 1"), op="posv"),
        }
    )
    message = "sm_89 has no tuned potrf table; that of sm_90 decides"
    with pytest.warns(BorrowedTableWarning) as given:
        decision = decide(POTRF, call(), SM_89)
    assert [str(each.message) for each in given] == [message]
    assert (decision.choice, decision.origin) == (Tiny(), Origin.BORROWED)
    # Warnings are errors here: no second one for this op and device.
    pick(POTRF, call(n=4), SM_89)
    pick(POTRF, call(dtype="float32"), SM_89)
    with pytest.warns(BorrowedTableWarning, match="sm_75 has no tuned potrf"):
        pick(POTRF, call(), gpu("sm_75", "sm", 75))
    with pytest.warns(BorrowedTableWarning, match="sm_89 has no tuned posv"):
        pick(op_spec("posv"), call(), SM_89)
    reset_warnings()
    with pytest.warns(BorrowedTableWarning, match="potrf"):
        pick(POTRF, call(n=2), SM_89)


def test_a_device_without_a_table_of_the_dtype_borrows():
    set_builtin_tables(
        {
            "potrf.sm_89.txt": table(row("cta 1", dtype="float32"), device="sm_89"),
            FILE: table(row("tiny 1")),
        }
    )
    with pytest.warns(BorrowedTableWarning, match="sm_90 decides"):
        assert decide(POTRF, call(), SM_89).origin is Origin.BORROWED


def test_the_nearest_lender_comes_first_and_the_next_one_may_serve():
    tables = {
        "potrf.sm_80.txt": table(row("cta 1"), device="sm_80"),
        "potrf.gfx942.txt": table(row("vendor 1"), device="gfx942"),
        "potrf.sm_120.txt": table(row("lpanel:8 1"), device="sm_120"),
    }
    set_builtin_tables(tables)
    with pytest.warns(BorrowedTableWarning, match="sm_80 decides"):
        assert pick(POTRF, call(), SM_90) == Cta()
    decision = decide(POTRF, call(n=100), SM_90)  # too large for cta
    assert decision.choice == Lpanel(8)
    assert [each.file for each in decision.steps] == [
        "potrf.sm_80.txt",
        "potrf.sm_120.txt",
    ]
    assert pick(POTRF, call(n=100, uplo="U"), SM_90) == Vendor()


def test_a_processor_is_silent_and_never_borrows_from_a_gpu():
    set_builtin_tables({FILE: table(row("tiny 1"))})
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        decision = decide(POTRF, call(), CPU)
    assert given == []
    assert (decision.choice, decision.origin) == (Blocked(), Origin.LAST_RESORT)
    assert {step.file for step in decision.steps} == {""}


def test_falling_through_an_own_table_is_no_loan():
    set_builtin_tables(
        {
            FILE: table(row("tiny 1", n=64)),
            "potrf.sm_80.txt": table(row("cta 1"), device="sm_80"),
        }
    )
    decision = decide(POTRF, call(n=64), SM_90)  # warnings are errors here
    assert (decision.choice, decision.origin) == (Cta(), Origin.FALLTHROUGH)
    assert decision.table.table.device == "sm_80"


@pytest.mark.parametrize(
    ("asked", "device", "last_resort", "expected"),
    [
        (call(), SM_90, ("blocked", "vendor"), Blocked()),
        (call(uplo="U"), SM_90, ("blocked", "vendor"), Vendor()),
        (call(), SM_90, ("vendor", "blocked"), Vendor()),
        (call(uplo="U"), NO_VENDOR, ("blocked", "vendor"), Tiny()),
        (call(uplo="U", n=64), NO_VENDOR, ("blocked", "vendor"), Cta()),
        (call(), SM_90, ("lpanel",), Lpanel(8)),
        (call(), SM_90, (), Tiny()),
        (call(), SM_90, ("no such family", "cta"), Cta()),
    ],
)
def test_last_resort(asked, device, last_resort, expected):
    set_builtin_tables({})
    spec = op_spec(last_resort=last_resort)
    decision = decide(spec, asked, device)
    assert (decision.choice, decision.origin) == (expected, Origin.LAST_RESORT)
    assert (decision.table, decision.row) == (None, None)
    assert decision.chosen == Step("", 0, expected, None, Verdict.CHOSEN)


def test_last_resort_lists_the_rest_in_their_own_order():
    candidates = (Tiny(), Lpanel(8), Cta(), Lpanel(16), Blocked(), Vendor())
    spec = op_spec(last_resort=("vendor", "lpanel"))
    assert last_resort_order(spec, candidates) == [
        *(Vendor(), Lpanel(8), Lpanel(16)),
        *(Tiny(), Cta(), Blocked()),
    ]


def test_last_resort_is_the_end_of_every_table():
    set_builtin_tables({FILE: table(row("tiny 1"))})
    decision = decide(POTRF, call(n=64), SM_90)
    assert (decision.choice, decision.origin) == (Blocked(), Origin.LAST_RESORT)
    assert decision.steps == (
        Step(FILE, 3, Tiny(), 1.0, Verdict.CANNOT_RUN),
        Step("", 0, Blocked(), None, Verdict.CHOSEN),
        Step("", 0, Vendor(), None, Verdict.RUNS),
        Step("", 0, Tiny(), None, Verdict.CANNOT_RUN),
        Step("", 0, Cta(), None, Verdict.RUNS),
        Step("", 0, Lpanel(8), None, Verdict.RUNS),
    )


def test_nothing_can_run():
    set_builtin_tables({FILE: table(row("tiny 1"))})
    with pytest.raises(NoRouteError, match="potrf"):
        decide(POTRF, call(n=100, uplo="U"), NO_VENDOR)
    set_builtin_tables({})
    empty = op_spec(candidates=lambda _dtype, _kind: ())
    with pytest.raises(NoRouteError):
        decide(empty, call(), SM_90)


class ArrayCall(NamedTuple):
    dtype: str
    array: str
    uplo: str
    n: int
    batch: int


@pytest.mark.parametrize(
    ("kind", "origin"), [("numpy", Origin.LAST_RESORT), ("cupy", Origin.BORROWED)]
)
def test_a_table_of_other_arrays_lends_nothing(kind, origin):
    """What was measured for one kind of array says nothing about another's kernels."""
    line = f"dtype=float64 array={kind} n=8 batch=8 | vendor 1 | tiny 2"
    spec = op_spec(keys=ArrayCall._fields)
    lender = table(line, keys="dtype:exact array:exact n:log batch:log", device="sm_80")
    set_builtin_tables({"potrf.sm_80.txt": lender})
    assert decide(spec, ArrayCall("float64", "cupy", "L", 8, 8), SM_90).origin is origin
