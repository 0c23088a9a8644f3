"""Choices are values with one spelling."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from select_cases import Blocked, Cta, Lpanel, Tiny, Vendor

from batchlas._select import Family, all_of, family, parse
from batchlas._select.families import knob_names
from batchlas.exceptions import SpellingError


@dataclass(frozen=True, slots=True)
class Reg(Family):
    name: ClassVar[str] = "reg"
    m: int
    n: int
    k: int


FAMILIES = (Tiny, Cta, Lpanel, Reg, Blocked, Vendor)
integers = st.integers(-(10**17), 10**17)
choices = st.one_of(
    st.sampled_from([Tiny(), Cta(), Vendor()]),
    st.builds(Lpanel, integers),
    st.builds(Reg, integers, integers, integers),
)


def test_spelling_is_the_long_form():
    assert str(Lpanel(8)) == "lpanel:panel=8"
    assert str(Reg(128, 64, 8)) == "reg:m=128:n=64:k=8"
    assert str(Vendor()) == "vendor"


@given(choices)
def test_spelling_round_trip(choice):
    assert parse(str(choice), FAMILIES) == choice


@given(integers, integers, integers, st.lists(st.booleans(), min_size=3, max_size=3))
def test_any_mixture_of_named_and_positional_values(m, n, k, named):
    values = {"m": m, "n": n, "k": k}
    parts = [
        f"{field}={value}" if long else str(value)
        for (field, value), long in zip(values.items(), named, strict=True)
    ]
    assert parse(":".join(["reg", *parts]), FAMILIES) == Reg(m, n, k)


def test_named_values_may_come_in_any_order():
    assert parse("reg:k=1:m=2:n=3", FAMILIES) == Reg(2, 3, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no family ''"),
        ("jacobi", "no family 'jacobi'; families: tiny, cta, lpanel"),
        ("Tiny", "no family 'Tiny'"),
        (" tiny", "no family ' tiny'"),
        ("tiny ", "no family 'tiny '"),
        ("tiny:8", "1 values; the fields are ()"),
        ("tiny:", "1 values"),
        ("lpanel", "0 values; the fields are (panel)"),
        ("lpanel:8:8", "2 values"),
        ("lpanel:width=8", "no field 'width'; the fields are (panel)"),
        ("lpanel:panel==8", "no field 'panel='"),
        ("lpanel:=8", "no field ''"),
        ("lpanel:panel=", "'' is not an integer"),
        ("lpanel:", "'' is not an integer"),
        ("lpanel:8.0", "'8.0' is not an integer"),
        ("lpanel:panel= 8", "' 8' is not an integer"),
        ("lpanel:8_0", "'8_0' is not an integer"),
        ("lpanel:+8", "'+8' is not an integer"),
        ("lpanel:\u0668", "is not an integer"),
        ("lpanel:" + "9" * 5000, "is not an integer"),
        ("reg:m=1:m=2:k=3", "field 'm' is given twice"),
        ("reg:n=1:2:3", "field 'n' is given twice"),
    ],
)
def test_rejected(text, why):
    with pytest.raises(SpellingError) as error:
        parse(text, FAMILIES)
    assert str(error.value).startswith(f"{text!r}: ")
    assert why in str(error.value)


@given(st.text())
def test_nothing_but_spelling_errors(text):
    try:
        choice = parse(text, FAMILIES)
    except SpellingError:
        return
    assert parse(str(choice), FAMILIES) == choice


def test_choices_are_values():
    assert Lpanel(8) == Lpanel(8) != Lpanel(16)
    assert Tiny() == Tiny() != Cta()
    assert len({Lpanel(8), Lpanel(8), Lpanel(16), Tiny(), Tiny(), Cta()}) == 4
    with pytest.raises(AttributeError):
        Lpanel(8).panel = 16


def test_knobs_and_the_library_mark():
    assert knob_names(Reg) == ("m", "n", "k")
    assert knob_names(Tiny) == ()
    assert (Vendor.uses_library, Tiny.uses_library) == (True, False)
    assert not Lpanel.uses_library
    assert (repr(Tiny()), repr(Lpanel(8))) == ("<tiny>", "Lpanel(panel=8)")


def test_two_families_of_one_name_are_not_the_same():
    assert family("tiny")() != Tiny()


def test_all_of_keeps_the_order():
    assert all_of(Vendor, Tiny, Cta) == (Vendor(), Tiny(), Cta())
