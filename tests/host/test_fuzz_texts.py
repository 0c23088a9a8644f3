"""Any text as a variable, a spelling or a table: a clear error or the right answer."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import batchlas
from batchlas import linalg
from batchlas._ops import SPECS
from batchlas._runtime import settings as settings_module
from batchlas._runtime.devices import host_cpu_key
from batchlas._runtime.settings import VARIABLES
from batchlas._select import families, testing
from batchlas._select.store import shipped_files
from batchlas.exceptions import (
    BatchlasWarning,
    NoRouteError,
    PinError,
    SettingsError,
    SpellingError,
    TableError,
)

common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
fast = settings(max_examples=200, derandomize=True, database=None, **common)
slow = settings(max_examples=2_000, print_blob=True, **common)
BOTH = [
    pytest.param(fast, id="fast"),
    pytest.param(slow, id="slow", marks=[pytest.mark.slow, pytest.mark.timeout(3600)]),
]

# What an environment can hold: no NUL, and nothing that is not to be encoded.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
NEAR = [
    *("", " ", "0", "1", "01", "+1", "-1", "1e3", "1_0", "\u0661", "9" * 5000),
    *("true", "ON", " off ", "no", "vendor", "NATIVE", "auto", "threads", "opencl"),
    *("lane", "lane:", "lane:width=4", "lane:8", "lane:width=4:width=4", "lane:x=1"),
    *(
        "/",
        ".",
        "~",
        "/dev/null",
        "/dev/null/x",
        "x" * 300,
        "x/" * 3000,
        "\n",
        "\u00e9",
    ),
]
values = st.one_of(st.sampled_from(NEAR), texts)


def check_names(error, what):
    assert what in str(error)


def check_place(error, file, lines):
    named, line, why = str(error).split(":", 2)
    assert named == file
    assert 1 <= int(line) <= lines
    assert why.strip()


def answers_rightly():
    """Make one small call of each op and check it."""
    a = np.array([[[4.0, 2.0], [2.0, 5.0]]] * 3)
    np.testing.assert_allclose(linalg.cholesky(a)[:, 1], [[1, 2]] * 3)
    np.testing.assert_allclose(linalg.eigh(a)[0].sum(-1), [9] * 3)
    np.testing.assert_allclose(linalg.svdvals(a).prod(-1), [16] * 3)


@pytest.mark.parametrize("profile", BOTH)
@pytest.mark.parametrize("name", VARIABLES)
def test_any_value_of_any_variable(name, profile, monkeypatch):
    # The next tests want their warnings.
    monkeypatch.setattr(settings_module._state, "warned", set())

    @given(values)
    @profile
    def examples(text):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BatchlasWarning)
            try:
                with batchlas.scoped_env(**{name: text}):
                    answers_rightly()
            except (SettingsError, PinError, NoRouteError) as error:
                check_names(error, name)
            finally:
                testing.reset_coverage()  # or it would be written at exit

    examples()
    answers_rightly()


CHOICES = sorted(
    {
        str(choice)
        for spec in SPECS
        for dtype in ("float32", "float64")
        for choice in spec.candidates(dtype, "numpy")
    }
)
PIECES = [*"=: -_0189abw", "lane", "width", "width=", ":width=4", "\u0664", "vendor"]
edits = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 3), st.sampled_from(PIECES)),
    max_size=3,
)


def damaged(text, damage):
    """Replace some characters at some places by some pieces."""
    for place, dropped, piece in damage:
        text = text[:place] + piece + text[place + dropped :]
    return text


@pytest.mark.parametrize("profile", BOTH)
def test_any_damage_to_a_spelling(profile):
    """What is taken spells a choice, whose own spelling means the same."""
    known = dict.fromkeys(
        each
        for spec in SPECS
        for d in ("float32", "float64")
        for each in spec.families(d)
    )

    @given(st.sampled_from(CHOICES), edits)
    @profile
    def examples(spelling, damage):
        text = damaged(spelling, damage)
        try:
            choice = families.parse(text, known)
        except SpellingError as error:
            check_names(error, repr(text))
            return
        assert families.parse(str(choice), known) == choice
        assert not set(text) - set("abcdefghijklmnopqrstuvwxyz0123456789_:=-")

    examples()


@pytest.fixture
def _shipped_tables_come_back():
    yield
    testing.use_shipped_tables()


def small_tables():
    """Return the head of every shipped table and its first rows, for this device."""
    key, _ = host_cpu_key()
    found = {}
    for file in shipped_files():
        lines = file.read().decode().splitlines()
        head = [line for line in lines if line.startswith("#")]
        rows = [line for line in lines if not line.startswith("#")][:6]
        text = "\n".join([*head, *rows, ""]).replace(
            f"device={file.device}", f"device={key}"
        )
        found[f"{file.op}.{key}.txt"] = text
    return found


TABLES = small_tables()
TABLE_PIECES = [
    *("|", "#", "=", ":", "-", " ", "\n", "0", "9", ".", "e5", "inf", "nan", "\t"),
    *(
        "n=8 ",
        "batch=64",
        "dtype=float64 ",
        "array=numpy",
        "vendor",
        "threads 1.0",
        "| ",
    ),
    *("# keys: ", "log:3", "exact", "\0", "\u2028", "\u0663", "99999999999999999999"),
]


@pytest.mark.usefixtures("_shipped_tables_come_back")
@pytest.mark.parametrize("profile", BOTH)
def test_any_damage_to_a_table(profile):
    """The calls that it decides are right, or the error names the file and the line."""

    @given(
        st.sampled_from(sorted(TABLES)),
        st.lists(
            st.tuples(
                st.integers(0, 2000), st.integers(0, 5), st.sampled_from(TABLE_PIECES)
            ),
            min_size=1,
            max_size=3,
        ),
    )
    @profile
    def examples(name, damage):
        text = damaged(TABLES[name], damage)
        testing.set_builtin_tables({**TABLES, name: text})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BatchlasWarning)
            try:
                answers_rightly()
            except TableError as error:
                check_place(error, name, text.count("\n") + 1)

    examples()
