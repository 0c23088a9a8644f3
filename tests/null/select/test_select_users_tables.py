"""The tables that a user has measured: found, preferred, and called stale."""

from __future__ import annotations

from pathlib import Path

import pytest
from select_cases import POTRF, SM_90, Tiny, Vendor, call, op_spec, row, table

from batchlas._runtime.folders import user_tables
from batchlas._runtime.settings import reload_settings, scoped_env, settings
from batchlas._select import decide, pick, sources, store
from batchlas._select.testing import set_builtin_tables
from batchlas._select.trace import tag_of
from batchlas.exceptions import StaleTableWarning

FILE = "potrf.sm_90.txt"
KINDS = "dtype:exact array:exact n:log batch:log"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the user's folder, in a home of its own."""
    monkeypatch.setattr(store, "user_tables", lambda: tmp_path)
    reload_settings()
    return tmp_path


def test_the_folder_is_the_platforms_own_for_data(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert user_tables().parts[-2:] == ("batchlas", "tuned")


def test_the_users_tables_come_before_the_shipped_ones(folder):
    set_builtin_tables({FILE: table(row("vendor 1"))})
    (folder / FILE).write_text(table(row("tiny 1")))
    decision = decide(POTRF, call(), SM_90)
    assert decision.choice == Tiny()
    assert tag_of(decision) == "user sm_90"
    with scoped_env(BATCHLAS_USER_TABLES="0"):
        assert pick(POTRF, call(), SM_90) == Vendor()


def test_an_override_comes_before_the_users_tables(folder, tmp_path_factory):
    override = tmp_path_factory.mktemp("override")
    (folder / FILE).write_text(table(row("tiny 1"), row("tiny 1", dtype="float32")))
    (override / FILE).write_text(table(row("vendor 1")))
    with scoped_env(BATCHLAS_TUNED_DIR=str(override)):
        assert pick(POTRF, call(), SM_90) == Vendor()
        assert pick(POTRF, call(dtype="float32"), SM_90) == Tiny()


def test_a_table_without_the_kind_of_array_gives_way(folder):
    """One that knows cupy arrays decides for them, whatever lies before it."""

    def text(kind, ranking):
        line = f"dtype=float64 array={kind} n=8 batch=8 | {ranking}"
        return table(line, keys=KINDS)

    spec = op_spec(keys=(*POTRF.keys, "array"))
    set_builtin_tables({FILE: text("cupy", "vendor 1 | tiny 2")})
    (folder / FILE).write_text(text("dpnp", "tiny 1 | vendor 2"))
    found = store.table_store(settings())
    assert found.find(spec, "sm_90", "float64", "cupy").place is store.Place.SHIPPED
    assert found.find(spec, "sm_90", "float64", "dpnp").place is store.Place.USER
    # Nobody knows numpy arrays here: the first table has to do.
    assert found.find(spec, "sm_90", "float64", "numpy").place is store.Place.USER


def stamped(op, kernels):
    return table(row("tiny 1"), op=op).replace("0123abcd", kernels)


def test_a_stale_table_warns_once_and_stays_in_use(folder):
    (folder / FILE).write_text(stamped("potrf", "00000000"))
    with pytest.warns(
        StaleTableWarning, match=r"potrf\.sm_90\.txt: measured with"
    ) as w:
        assert pick(POTRF, call(), SM_90) == Tiny()
    assert len(w) == 1
    assert "python -m batchlas tune" in str(w[0].message)


@pytest.mark.filterwarnings("error::batchlas.exceptions.StaleTableWarning")
def test_a_table_of_these_very_kernels_is_not_stale(folder):
    now = sources.kernels_hash("potrf", "sm_90")
    (folder / FILE).write_text(stamped("potrf", now))
    assert pick(POTRF, call(), SM_90) == Tiny()


@pytest.mark.filterwarnings("error::batchlas.exceptions.StaleTableWarning")
def test_shipped_tables_do_not_warn_users():
    set_builtin_tables({FILE: stamped("potrf", "00000000")})
    assert pick(POTRF, call(), SM_90) == Tiny()


def test_the_hash_covers_what_an_op_imports_and_the_adapters():
    names = {path.name for path in sources._closure(sources._PACKAGE / "_ops/potrf.py")}
    assert {"potrf.py", "lane.py", "schedule.py", "opencl.py", "limits.py"} <= names
    ops = "potrf", "syev", "gesvd"
    hashes = {op: sources.kernels_hash(op, "cpu_avx512") for op in ops}
    assert len(set(hashes.values())) == 3
    assert all(len(each) == 8 for each in hashes.values())
    assert sources.kernels_hash("no_such_op", "cpu_avx512") is None


def more_text(monkeypatch, suffix, text):
    """Have sources of a name end in some text, from now on."""
    monkeypatch.undo()
    read = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda path, **how: read(path, **how) + path.name.endswith(suffix) * text,
    )


def test_what_is_said_about_kernels_makes_no_table_stale(monkeypatch):
    def hashes():
        sources.kernels_hash.cache_clear()
        return [sources.kernels_hash("syev", key) for key in ("cpu_avx512", "sm_90")]

    before = hashes()
    for suffix, text in (
        ("ql.py", "\n# a comment\n"),
        ("ql.py", '\n"""A docstring\nof two lines."""\n'),
        ("ql.py", "\n\n"),
        ("jacobi.cu", "\n// a comment\n"),
        ("jacobi.cu", "/* a\ncomment */  "),
    ):
        more_text(monkeypatch, suffix, text)
        assert hashes() == before, (suffix, text)
    for suffix, text, changed in (("ql.py", "a = '#b'", 0), ("jacobi.cu", "a", 1)):
        more_text(monkeypatch, suffix, text)
        after = hashes()
        assert after[changed] != before[changed]
        assert after[1 - changed] == before[1 - changed]
    monkeypatch.undo()
    sources.kernels_hash.cache_clear()


def test_devices_of_one_kind_do_not_mind_the_other_kinds_sources(monkeypatch):
    def hashes():
        sources.kernels_hash.cache_clear()
        return [sources.kernels_hash("syev", key) for key in ("cpu_avx512", "sm_90")]

    before = hashes()
    for suffix, kept in ((".cu", 0), ("onemkl.py", 1), ("syev.py", 1)):
        more_text(monkeypatch, suffix, "x = 1;")
        after = hashes()
        assert after[kept] == before[kept]
        assert after[1 - kept] != before[1 - kept]
    monkeypatch.undo()
    sources.kernels_hash.cache_clear()
