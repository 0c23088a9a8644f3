"""The exact text of the trace."""

import pytest
from select_cases import CPU, POTRF, SM_90, call, gpu, op_spec, row, table

from batchlas._runtime.settings import scoped_env
from batchlas._select import ScopedPin, decide, run
from batchlas._select.testing import set_builtin_tables
from batchlas._select.trace import format_ms, line_of
from batchlas.exceptions import BatchlasWarning, BorrowedTableWarning, PinError

FILE = "potrf.sm_90.txt"
SHAPE = "potrf float64 uplo=L n=8 batch=1024"


def builtin(ranking, **header):
    set_builtin_tables({FILE: table(row(ranking), **header)})


def nothing(_choice):
    return None


def trace_on(**variables):
    return scoped_env(BATCHLAS_SELECT_TRACE="1", **variables)


@pytest.mark.parametrize(
    ("ranking", "detail"),
    [
        ("tiny 0.0123 | vendor 0.0456", "tiny (0.0123 ms, next vendor 0.0456 ms)"),
        ("tiny 1.5 | vendor 123.456", "tiny (1.50 ms, next vendor 123.46 ms)"),
        ("lpanel:8 0.5", "lpanel:panel=8 (0.500 ms)"),
        # Within 3 % the ranking prefers the simpler one, so the next may be faster.
        ("tiny 1.00 | vendor 1.03", "tiny (1.00 ms, tied with vendor (+3.0%))"),
        ("tiny 1.02 | vendor 1.00", "tiny (1.02 ms, tied with vendor (-2.0%))"),
        ("tiny 1.00 | vendor 1.04", "tiny (1.00 ms, next vendor 1.04 ms)"),
        ("tiny 1.04 | vendor 1.00", "tiny (1.04 ms, next vendor 1.00 ms)"),
        # Neither what cannot run nor what is no candidate is next.
        ("tiny 1 | lpanel:16 2 | cta 3", "tiny (1.00 ms, next cta 3.00 ms)"),
        ("lpanel:16 1 | tiny 2 | cta 3", "tiny (2.00 ms, next cta 3.00 ms)"),
    ],
)
def test_detail(ranking, detail):
    builtin(ranking)
    assert line_of(decide(POTRF, call(), SM_90)) == f"{SHAPE} -> {detail} [sm_90]"


def test_untimed_row():
    builtin("tiny - | vendor -", source="transcribed:0a")
    line = line_of(decide(POTRF, call(), SM_90))
    assert line == f"{SHAPE} -> tiny (transcribed) [sm_90]"


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.00001234, "0.0000123 ms"),
        (0.0456789, "0.0457 ms"),
        (0.5, "0.500 ms"),
        (0.9994, "0.999 ms"),
        (0.9996, "1.00 ms"),
        (1.0, "1.00 ms"),
        (12.345678, "12.35 ms"),
        (1234.5, "1234.50 ms"),
    ],
)
def test_times(ms, text):
    assert format_ms(ms) == text


def test_tags(tmp_path):
    builtin("tiny 1")
    sm_89 = gpu("sm_89", "sm", 89)
    lines = []

    def trace(device, n=8):
        lines.append(line_of(decide(POTRF, call(n=n), device)))

    with pytest.warns(BorrowedTableWarning):
        trace(sm_89)
    trace(CPU)
    older = table(row("cta 2"), device="sm_80")
    set_builtin_tables({FILE: table(row("tiny 1")), "potrf.sm_80.txt": older})
    trace(SM_90, n=64)
    (tmp_path / FILE).write_text(table(row("vendor 3")))
    with scoped_env(BATCHLAS_TUNED_DIR=str(tmp_path)):
        trace(SM_90)
        set_builtin_tables({})
        trace(sm_89)
    assert [line.partition(" -> ")[2] for line in lines] == [
        "tiny (1.00 ms) [sm_90 table, borrowed for sm_89]",
        "blocked [last resort]",
        "cta (2.00 ms) [sm_80 table, fallthrough from sm_90]",
        "vendor (3.00 ms) [override sm_90]",
        "vendor (3.00 ms) [override sm_90 table, borrowed for sm_89]",
    ]


def test_tags_of_pins():
    builtin("tiny 1 | vendor 2")
    lines = []
    for text in ("lpanel:8", "native", "vendor", "auto"):
        with ScopedPin("potrf", text):
            lines.append(line_of(decide(POTRF, call(), SM_90)))
    set_builtin_tables({})
    with ScopedPin("potrf", "native"):
        lines.append(line_of(decide(POTRF, call(), SM_90)))
    assert [line.partition(" -> ")[2] for line in lines] == [
        "lpanel:panel=8 [pinned]",
        "tiny (1.00 ms) [sm_90, pinned native]",
        "vendor (2.00 ms) [sm_90, pinned vendor]",
        "tiny (1.00 ms, next vendor 2.00 ms) [sm_90]",
        "blocked [last resort, pinned native]",
    ]


def test_one_line_per_decision_indented_under_its_parent(capsys):
    set_builtin_tables({})
    posv, trsm = op_spec("posv"), op_spec("trsm")

    def solve(_choice):
        run(POTRF, call(), SM_90, lambda _: run(trsm, call(n=4), SM_90, nothing))
        return run(trsm, call(n=2), SM_90, nothing)

    with trace_on():
        run(posv, call(uplo="U"), SM_90, solve)
        run(POTRF, call(), SM_90, nothing)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "batchlas: posv float64 uplo=U n=8 batch=1024 -> vendor [last resort]",
        "batchlas:   potrf float64 uplo=L n=8 batch=1024 -> blocked [last resort]",
        "batchlas:     trsm float64 uplo=L n=4 batch=1024 -> blocked [last resort]",
        "batchlas:   trsm float64 uplo=L n=2 batch=1024 -> blocked [last resort]",
        "batchlas: potrf float64 uplo=L n=8 batch=1024 -> blocked [last resort]",
    ]


def test_a_launch_that_raises_ends_its_indentation(capsys):
    set_builtin_tables({})

    def fail(_choice):
        raise ZeroDivisionError

    with trace_on():
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                run(POTRF, call(), SM_90, fail)
    first, second = capsys.readouterr().err.splitlines()
    assert first == second == f"batchlas: {SHAPE} -> blocked [last resort]"


def test_every_warm_call_is_a_line_too(capsys):
    set_builtin_tables({})
    with trace_on():
        for _ in range(3):
            run(POTRF, call(), SM_90, nothing)
    assert len(capsys.readouterr().err.splitlines()) == 3


def test_a_size_query_and_a_refusal_print_nothing(capsys):
    set_builtin_tables({})
    with trace_on(BATCHLAS_POTRF_ROUTE="jacobi"):
        with pytest.raises(PinError):
            run(POTRF, call(), SM_90, nothing)
        decide(op_spec("posv"), call(), SM_90)
    assert capsys.readouterr().err == ""


def test_off_means_silent(capsys):
    set_builtin_tables({})
    run(POTRF, call(), SM_90, nothing)
    with scoped_env(BATCHLAS_SELECT_TRACE="0"):
        run(POTRF, call(), SM_90, nothing)
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_class_word_that_fell_back_is_not_in_the_tag(capsys):
    builtin("vendor 1")
    with (
        trace_on(BATCHLAS_POTRF_ROUTE="native"),
        pytest.warns(BatchlasWarning, match="taking auto"),
    ):
        run(POTRF, call(n=100, uplo="U"), SM_90, nothing)
    assert capsys.readouterr().err.endswith("-> vendor (1.00 ms) [sm_90]\n")
