"""What a well-formed table file is, error by error."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from select_cases import KEYS, row, table

from batchlas._select.table import TableEntry, TableKey
from batchlas._select.table_parser import parse_file_name, parse_tables
from batchlas.exceptions import TableError

FILE = "potrf.sm_90.txt"
HEADER = "# op=potrf device=sm_90"
GOOD = table(
    row("tiny 0.0123 | vendor 0.0456"),
    "# a remark: n=8 batch=64 was too noisy",
    "",
    "  batch=64 n=32 uplo=U dtype=float32|vendor 1|lpanel:16 2.50   # busy machine",
    row("cta 3 | vendor 4", n=16),
)


def test_every_part_of_a_good_file():
    tables = parse_tables(FILE, GOOD)
    assert list(tables) == ["float64", "float32"]
    double, single = tables.values()
    assert (double.op, double.device, double.dtype) == ("potrf", "sm_90", "float64")
    assert (double.file, double.keys_line) == (FILE, 2)
    assert double.exact_keys == (TableKey("uplo", exact=True),)
    assert double.log_keys == (
        TableKey("n", exact=False, weight=3.0),
        TableKey("batch", exact=False, weight=1.0),
    )
    assert [each.line for each in double.rows] == [3, 7]
    assert double.rows[0].exact == ("L",)
    assert double.rows[0].log == (8, 1024)
    assert double.rows[0].entries == (
        TableEntry("tiny", 0.0123),
        TableEntry("vendor", 0.0456),
    )
    assert single.rows[0].exact == ("U",)
    assert single.rows[0].log == (32, 64)
    assert single.rows[0].entries == (
        TableEntry("vendor", 1.0),
        TableEntry("lpanel:16", 2.5),
    )
    assert single.rows[0].line == 6
    assert dict(double.facts) == {
        "op": "potrf",
        "device": "sm_90",
        "batchlas": "1a2b3c4",
        "kernels": "0123abcd",
        "source": "measured",
    }


def test_windows_line_ends_and_padded_integers():
    text = GOOD.replace("\n", "\r\n").replace("n=32", "n=032")
    assert parse_tables(FILE, text)["float32"].rows[0].log == (32, 64)


def test_untimed_rows_of_a_transcript():
    text = table(row("tiny - | vendor -"), source="transcribed:0a1b")
    entries = parse_tables(FILE, text)["float64"].rows[0].entries
    assert entries == (TableEntry("tiny", None), TableEntry("vendor", None))


def test_a_header_may_span_lines_and_stand_among_remarks():
    header = "# source of truth: a quiet machine\n# op=potrf\n# device=sm_90"
    text = f"{header}\n# keys: {KEYS}\n{row('tiny 1')}"
    assert dict(parse_tables(FILE, text)["float64"].facts) == {
        "op": "potrf",
        "device": "sm_90",
    }


def rows_after(*lines, keys=KEYS):
    return "\n".join([HEADER, f"# keys: {keys}", *lines])


KEY_ERRORS = [
    ("dtype:exact n", "key 'n' needs a kind"),
    ("dtype:exact n:linear", "key 'n' needs a kind"),
    ("dtype:exact n:", "key 'n' needs a kind"),
    ("dtype:exact n:log:0", "weight '0' of 'n' is not a positive plain decimal"),
    ("dtype:exact n:log:0.0", "weight '0.0'"),
    ("dtype:exact n:log:-1", "weight '-1'"),
    ("dtype:exact n:log:1e3", "weight '1e3'"),
    ("dtype:exact n:log:inf", "weight 'inf'"),
    ("dtype:exact n:log:nan", "weight 'nan'"),
    ("dtype:exact n:log:1,5", "weight '1,5'"),
    ("dtype:exact n:log:", "weight ''"),
    ("dtype:exact n:log:1:2", "weight '1:2'"),
    ("dtype:exact uplo:exact:2 n:log", "exact key 'uplo' has a weight"),
    ("dtype:exact n:log n:log", "a key is declared twice"),
    ("dtype:exact n:log uplo:exact", "exact key follows a log key"),
    ("dtype:exact 2n:log", "'2n' is not a key name"),
    ("uplo:exact dtype:exact n:log", "the first key must be dtype:exact"),
    ("dtype:log n:log", "the first key must be dtype:exact"),
    ("", "the first key must be dtype:exact"),
]


@pytest.mark.parametrize(("keys", "why"), KEY_ERRORS)
def test_keys_line(keys, why):
    assert_refused(rows_after(row("tiny 1"), keys=keys), 2, why)


ROW_ERRORS = [
    ("dtype=float64 uplo=L n=8 | tiny 1", "key 'batch' is missing"),
    ("uplo=L n=8 batch=1 | tiny 1", "key 'dtype' is missing"),
    ("dtype=float64 uplo=L n=8 batch=1 q=3 | tiny 1", "unknown key 'q'; keys (line 2)"),
    ("dtype=float64 uplo=L n=8 n=8 batch=1 | tiny 1", "key 'n' is given twice"),
    ("dtype=float64 uplo=L n=0 batch=1 | tiny 1", "n='0' is not a positive integer"),
    ("dtype=float64 uplo=L n=-8 batch=1 | tiny 1", "n='-8' is not"),
    ("dtype=float64 uplo=L n=8.5 batch=1 | tiny 1", "n='8.5' is not"),
    ("dtype=float64 uplo=L n=1e3 batch=1 | tiny 1", "n='1e3' is not"),
    ("dtype=float64 uplo=L n=\u0668 batch=1 | tiny 1", "is not a positive integer"),
    ("dtype=float64 uplo=L n=" + "9" * 5000 + " batch=1 | tiny 1", "is not a positive"),
    ("dtype=float64 uplo= n=8 batch=1 | tiny 1", "'uplo=' is not key=value"),
    ("dtype=float64 L n=8 batch=1 | tiny 1", "'L' is not key=value"),
    ("dtype=float64 uplo=L n=8 batch=1", "the row ranks no choice"),
    ("dtype=float64 uplo=L n=8 batch=1 |", "'' is not 'choice milliseconds'"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny 1 |", "'' is not 'choice milli"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny", "'tiny' is not 'choice milli"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny 1 ms", "'tiny 1 ms' is not"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny -1", "time '-1' of 'tiny' is not"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny 0", "time '0' of 'tiny' is not"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny 1e-3", "time '1e-3' of 'tiny' is not"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny inf", "time 'inf' of 'tiny' is not"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny nan", "time 'nan' of 'tiny' is not"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny 1,5", "time '1,5' of 'tiny' is not"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny 1 | tiny 2", "ranked twice: tiny"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny 1 | cta -", "some choices of the row"),
    ("dtype=float64 uplo=L n=8 batch=1 | tiny -", "untimed row, but source=nothing"),
    ("dtype=float64 uplo=L n=16 batch=1024 | cta 1", "this shape is already on line 3"),
    ("batch=1024 n=016 uplo=L dtype=float64 | cta 1", "is already on line 3"),
    ("#keys: dtype:exact", "second keys line; the first is line 2"),
]


@pytest.mark.parametrize(("line", "why"), ROW_ERRORS)
def test_rows(line, why):
    assert_refused(rows_after(row("tiny 1", n=16), "", line), 5, why)


FILE_ERRORS = [
    ("", 1, "no keys line"),
    (HEADER, 1, "no keys line"),
    (f"{HEADER}\n# keys: {KEYS}", 2, "no rows"),
    (f"{HEADER}\n{row('tiny 1')}", 2, "row before the keys line"),
    (f"# keys: {KEYS}\n{HEADER}", 1, "no op= in the header"),
    (f"# op=potrf\n# keys: {KEYS}", 2, "no device= in the header"),
    (f"# device=sm_90\n# keys: {KEYS}", 2, "no op= in the header"),
    ("# op=syev device=sm_90", 1, "header says op=syev, the file name potrf"),
    ("# op=potrf device=sm_80", 1, "header says device=sm_80, the file name sm_90"),
    ("# op=potrf device=sm_90 dtype=float64", 1, "unknown header field 'dtype'"),
    ("# op=potrf op=potrf", 1, "header field 'op' is given twice"),
    ("# op=potrf kernels=123", 1, "header field kernels='123' is malformed"),
    ("# op=potrf batchlas=HEAD", 1, "header field batchlas='HEAD' is malformed"),
    ("# op=potrf source=transcribed:xyz", 1, "header field source="),
    (f"{HEADER}\n# page\x0cbreak\u2028here\nrubbish", 3, "row before the keys"),
    ("# op=", 1, "header field op='' is malformed"),
]


@pytest.mark.parametrize(("text", "line", "why"), FILE_ERRORS)
def test_whole_files(text, line, why):
    assert_refused(text, line, why)


def assert_refused(text, line, why):
    with pytest.raises(TableError) as error:
        parse_tables(FILE, text)
    assert str(error.value).startswith(f"{FILE}:{line}: ")
    assert why in str(error.value)


def test_messages_name_the_file_as_given():
    with pytest.raises(TableError, match=r"^/some/folder/potrf\.sm_90\.txt:1: no keys"):
        parse_tables("/some/folder/potrf.sm_90.txt", "")


def test_unchanged_text_is_parsed_once():
    assert parse_tables(FILE, GOOD) is parse_tables(FILE, "".join(GOOD))
    assert parse_tables(FILE, GOOD) is not parse_tables(FILE, GOOD + "# more\n")


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("potrf.sm_90.txt", ("potrf", "sm_90")),
        ("potrf.cpu_avx512.txt", ("potrf", "cpu_avx512")),
        ("potrf.txt", None),
        ("potrf.sm_90.csv", None),
        ("potrf.sm_90.txt.bak", None),
        ("Potrf.sm_90.txt", None),
        ("potrf.sm_90.float64.txt", None),
        ("README.md", None),
    ],
)
def test_file_names(name, named):
    assert parse_file_name(name) == named


# Pieces of good and bad files, so that the fuzz reaches every state of the reader.
PIECES = [
    *("# ", "keys: ", "op=potrf ", "device=sm_90 ", "source=transcribed:0a ", "\n"),
    *("dtype:exact ", "uplo:exact ", "n:log:3 ", "n:log:9e9 ", "batch:log ", " "),
    *("dtype=float64 ", "uplo=L ", "n=8 ", "n=", "batch=64 ", "| ", "tiny ", "0.5 "),
    *("- ", "-1 ", "9" * 400, "#", ":", "=", "\0", "\u00a0", "\u2028", "\r", "\u0663"),
    *(f"{HEADER}\n", f"# keys: {KEYS}\n", row("tiny 1 | cta 2") + "\n"),
]
pieces = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
edits = st.tuples(st.integers(0, len(GOOD)), st.integers(0, 3), st.sampled_from(PIECES))


def parse_or_table_error(text):
    with suppress(TableError):
        parse_tables(FILE, text)


@given(st.one_of(pieces, st.text()))
@settings(max_examples=400)
def test_any_text_is_parsed_or_a_table_error(text):
    parse_or_table_error(text)


@given(st.lists(edits, min_size=1, max_size=3))
@settings(max_examples=400)
def test_any_damage_is_parsed_or_a_table_error(damage):
    text = GOOD
    for place, dropped, piece in damage:
        text = text[:place] + piece + text[place + dropped :]
    parse_or_table_error(text)
