"""Which measured shape speaks for a call."""

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from select_cases import call, row, table

from batchlas._select.table import nearest
from batchlas._select.table_parser import parse_tables
from batchlas.exceptions import TableError


def make_table(*rows, **header):
    return parse_tables("potrf.sm_90.txt", table(*rows, **header))["float64"]


def shape(tuned, asked):
    found = nearest(tuned, asked)
    return (*found.exact, *found.log)


def test_the_measured_shape_itself():
    tuned = make_table(*(row("tiny 1", n=n) for n in (4, 8, 16)))
    assert [shape(tuned, call(n=n))[1] for n in (4, 8, 16)] == [4, 8, 16]


@pytest.mark.parametrize(
    ("n", "expected"),
    # 8 is the geometric midpoint of 4 and 16; 10 would be the arithmetic one.
    [(1, 4), (7, 4), (8, 4), (9, 16), (10, 16), (1000, 16)],
)
def test_distance_is_geometric_and_a_tie_goes_to_the_smaller(n, expected):
    for rows in ((4, 16), (16, 4)):  # whatever the order of the rows
        tuned = make_table(*(row("tiny 1", n=each) for each in rows))
        assert shape(tuned, call(n=n)) == ("L", expected, 1024)


def test_ties_go_to_smaller_n_then_smaller_batch():
    keys = "dtype:exact uplo:exact n:log batch:log"
    corners = [(16, 256), (4, 256), (16, 64), (4, 64)]
    rows = [row("tiny 1", n=n, batch=batch) for n, batch in corners]
    asked = call(n=8, batch=128)
    assert shape(make_table(*rows, keys=keys), asked) == ("L", 4, 64)
    assert shape(make_table(*rows[:3], keys=keys), asked) == ("L", 4, 256)
    assert shape(make_table(rows[0], rows[2], keys=keys), asked) == ("L", 16, 64)


def test_ties_follow_the_declared_order_of_keys():
    keys = "dtype:exact uplo:exact batch:log n:log"
    rows = [row("tiny 1", n=4, batch=256), row("tiny 1", n=16, batch=64)]
    tuned = make_table(*rows, keys=keys)
    assert shape(tuned, call(n=8, batch=128)) == ("L", 64, 16)


def test_rounded_logarithms_still_tie():
    # The two distances differ in the last bits only.
    assert log2(28) - log2(14) < log2(14) - log2(7)
    tuned = make_table(row("tiny 1", n=28), row("tiny 1", n=7))
    assert shape(tuned, call(n=14)) == ("L", 7, 1024)


@pytest.mark.parametrize(("weight", "expected"), [("3", (8, 64)), ("0.1", (32, 1024))])
def test_weights(weight, expected):
    # n is off by a factor of 4 in one row, batch by 16 in the other.
    keys = f"dtype:exact uplo:exact n:log:{weight} batch:log:0.5"
    rows = [row("tiny 1", n=32, batch=1024), row("tiny 1", n=8, batch=64)]
    assert shape(make_table(*rows, keys=keys), call())[1:] == expected


KEYS_3 = "dtype:exact a:exact b:exact c:exact n:log"


class Asked(tuple):
    """A call whose keys are a, b, c and n."""

    __slots__ = ()
    dtype = "float64"

    def _asdict(self):
        return dict(zip("abcn", self, strict=True))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (["1 2 3 64", "1 2 9 8", "1 9 3 8", "9 2 3 8"], ("1", "2", "3", 64)),
        (["1 2 9 64", "1 9 3 8", "9 2 3 8"], ("1", "2", "9", 64)),
        (["1 9 9 64", "9 2 3 8"], ("1", "9", "9", 64)),
        (["9 2 3 64", "9 9 9 8"], ("9", "9", "9", 8)),
    ],
)
def test_exact_keys_are_dropped_from_the_right_one_at_a_time(rows, expected):
    lines = [
        "dtype=float64 a={} b={} c={} n={} | tiny 1".format(*each.split())
        for each in rows
    ]
    assert shape(make_table(*lines, keys=KEYS_3), Asked((1, 2, 3, 8))) == expected


def test_exact_values_are_compared_as_text():
    lines = [f"dtype=float64 a={a} b=2 c=3 n=8 | tiny 1" for a in ("True", "1")]
    tuned = make_table(*lines, keys=KEYS_3)
    assert shape(tuned, Asked((True, 2, 3, 8)))[0] == "True"


@pytest.mark.parametrize("keys", ["dtype:exact q:log", "dtype:exact q:exact"])
def test_a_missing_key_names_the_table(keys):
    tuned = make_table("dtype=float64 q=8 | tiny 1", keys=keys)
    with pytest.raises(TableError, match=r"^potrf\.sm_90\.txt:2: .* no key 'q'"):
        nearest(tuned, call())


def test_the_answer_is_remembered():
    tuned = make_table(row("tiny 1"))
    nearest(tuned, call())
    before = nearest.cache_info().hits
    nearest(tuned, call())
    assert nearest.cache_info().hits == before + 1


sizes = st.integers(1, 2**40)
shapes = st.tuples(st.sampled_from("LU"), sizes, sizes)


def from_shapes(measured):
    rows = [row("tiny 1", n=n, batch=b, uplo=uplo) for uplo, n, b in measured]
    return make_table(*rows)


@given(st.lists(shapes, unique=True, min_size=1, max_size=8), st.data())
def test_a_measured_shape_is_its_own_nearest(measured, data):
    uplo, n, batch = data.draw(st.sampled_from(measured))
    asked = call(n=n, batch=batch, uplo=uplo)
    found_uplo, *found = shape(from_shapes(measured), asked)
    assert found_uplo == uplo
    # A neighbour may tie to within rounding, and then is the smaller one.
    assert far(found, (n, batch)) <= 1e-9


def far(have, want):
    return 3 * abs(log2(have[0] / want[0])) + abs(log2(have[1] / want[1]))


@given(st.lists(shapes, unique=True, min_size=1, max_size=8), shapes)
def test_no_row_of_the_same_exact_keys_is_nearer(measured, asked):
    uplo, n, batch = asked
    found_uplo, *found = shape(from_shapes(measured), call(n, batch, uplo))
    rivals = [each[1:] for each in measured if each[0] == uplo]
    if rivals:
        assert found_uplo == uplo
    for rival in rivals or [each[1:] for each in measured]:
        assert far(found, (n, batch)) <= far(rival, (n, batch)) + 2e-9


@given(st.lists(shapes, unique=True, min_size=1, max_size=8), shapes, st.randoms())
def test_the_order_of_the_rows_does_not_matter(measured, asked, random):
    uplo, n, batch = asked
    shuffled = random.sample(measured, len(measured))
    asked_call = call(n, batch, uplo)
    assert shape(from_shapes(measured), asked_call) == shape(
        from_shapes(shuffled), asked_call
    )
