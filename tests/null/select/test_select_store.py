"""Which table files exist, which counts, and when they are read."""

from dataclasses import replace
from pathlib import Path

import pytest
from select_cases import CPU, POTRF, SM_90, Lpanel, Tiny, Vendor, call, row, table

from batchlas._runtime.settings import Settings, scoped_env, settings
from batchlas._select import decide, pick, store
from batchlas._select.table_parser import parse_tables
from batchlas._select.testing import (
    reset_warnings,
    set_builtin_tables,
    use_shipped_tables,
)
from batchlas._select.walk import Origin
from batchlas.exceptions import BatchlasWarning, TableError

FILE = "potrf.sm_90.txt"


def tuned_dir(folder):
    return scoped_env(BATCHLAS_TUNED_DIR=str(folder))


def test_swaps_take_effect_at_once_and_can_be_undone():
    numbers = [store.generation()]
    choices = []
    for ranking in ("tiny 1 | vendor 2", "vendor 1 | tiny 2"):
        set_builtin_tables({FILE: table(row(ranking))})
        choices.append(pick(POTRF, call(), SM_90))
        numbers.append(store.generation())
    assert choices == [Tiny(), Vendor()]
    use_shipped_tables()
    numbers.append(store.generation())
    assert numbers == sorted(set(numbers))
    assert pick(POTRF, call(dtype="no such dtype"), SM_90) is not None


def test_no_tables_at_all_is_legal():
    set_builtin_tables({})
    assert decide(POTRF, call(), SM_90).origin is Origin.LAST_RESORT


def test_a_builtin_file_must_be_named_after_op_and_device():
    with pytest.raises(TableError, match=r"^potrf\.txt:1: .*<op>\.<device>\.txt"):
        set_builtin_tables({"potrf.txt": table(row("tiny 1"))})


BAD_SPELLINGS = [
    ("jacobi 1", "no family 'jacobi'"),
    ("lpanel 1", "0 values"),
    ("Tiny 1", "no family 'Tiny'"),
    ("lpanel:8 1 | lpanel:panel=8 2", "ranked twice"),
]


@pytest.mark.parametrize(("ranking", "why"), BAD_SPELLINGS)
def test_a_wrong_spelling_fails_loudly_even_in_a_row_that_is_far_away(ranking, why):
    text = table(row("tiny 1"), row(ranking, n=1000))
    set_builtin_tables({FILE: text})
    with pytest.raises(TableError, match=r"^potrf\.sm_90\.txt:4: ") as error:
        decide(POTRF, call(), SM_90)
    assert why in str(error.value)


def test_other_dtypes_are_not_checked_before_they_are_asked():
    text = table(row("tiny 1"), row("jacobi 1", dtype="float32"))
    set_builtin_tables({FILE: text})
    assert pick(POTRF, call(), SM_90) == Tiny()
    with pytest.raises(TableError, match="no family 'jacobi'"):
        pick(POTRF, call(dtype="float32"), SM_90)


def test_a_family_of_another_backend_is_a_known_spelling():
    text = table(row("cta 1 | tiny 2"), device="cpu_avx512")
    set_builtin_tables({"potrf.cpu_avx512.txt": text})
    assert pick(POTRF, call(), CPU) == Tiny()


def test_a_key_that_the_op_does_not_have():
    keys = "dtype:exact side:exact n:log"
    text = table("dtype=float64 side=L n=8 | tiny 1", keys=keys)
    set_builtin_tables({FILE: text})
    with pytest.raises(TableError, match=r"txt:2: potrf has no key 'side'; keys: dty"):
        decide(POTRF, call(), SM_90)


def test_files_of_other_ops_and_devices_are_left_alone():
    set_builtin_tables({FILE: table(row("tiny 1")), "syev.sm_90.txt": "rubbish"})
    assert pick(POTRF, call(), SM_90) == Tiny()
    set_builtin_tables({FILE: table(row("tiny 1")), "potrf.sm_80.txt": "rubbish"})
    assert pick(POTRF, call(), SM_90) == Tiny()


def test_unchanged_text_is_not_parsed_again_after_a_swap():
    text = table(row("tiny 1"), "# only in this test")
    set_builtin_tables({FILE: text})
    pick(POTRF, call(), SM_90)
    misses = parse_tables.cache_info().misses
    set_builtin_tables({FILE: text})
    pick(POTRF, call(), SM_90)
    assert parse_tables.cache_info().misses == misses


def test_override_replaces_dtype_by_dtype(tmp_path):
    builtin = table(row("tiny 1"), row("tiny 1", dtype="float32"))
    set_builtin_tables({FILE: builtin})
    (tmp_path / FILE).write_text(table(row("vendor 1")))
    with tuned_dir(tmp_path):
        double = decide(POTRF, call(), SM_90)
        single = decide(POTRF, call(dtype="float32"), SM_90)
    assert (double.choice, double.table.place) == (Vendor(), store.Place.OVERRIDE)
    assert (single.choice, single.table.place) == (Tiny(), store.Place.SHIPPED)
    assert pick(POTRF, call(), SM_90) == Tiny()


def test_override_may_add_a_device(tmp_path):
    set_builtin_tables({})
    (tmp_path / FILE).write_text(table(row("lpanel:8 1")))
    with tuned_dir(tmp_path):
        assert pick(POTRF, call(), SM_90) == Lpanel(8)


def test_override_is_read_again_after_a_reload(tmp_path):
    (tmp_path / FILE).write_text(table(row("tiny 1")))
    with tuned_dir(tmp_path):
        assert pick(POTRF, call(), SM_90) == Tiny()
        (tmp_path / FILE).write_text(table(row("vendor 1")))
        assert pick(POTRF, call(), SM_90) == Tiny()
    with tuned_dir(tmp_path):
        assert pick(POTRF, call(), SM_90) == Vendor()


def test_a_malformed_override_names_its_path_and_line(tmp_path):
    (tmp_path / FILE).write_text(table(row("tiny -1")))
    with tuned_dir(tmp_path), pytest.raises(TableError) as error:
        pick(POTRF, call(), SM_90)
    assert str(error.value).startswith(f"{tmp_path / FILE}:3: time '-1'")


def test_a_table_that_is_not_utf8(tmp_path):
    (tmp_path / FILE).write_bytes(table(row("tiny 1")).encode() + b"# \xff\n")
    with tuned_dir(tmp_path), pytest.raises(TableError, match=r"txt:4: not UTF-8"):
        pick(POTRF, call(), SM_90)


def test_strangers_in_the_override_folder_are_skipped_with_one_warning(tmp_path):
    fresh = table(row("tiny 1")).replace(" kernels=0123abcd", "")
    (tmp_path / FILE).write_text(fresh)
    (tmp_path / "potrf.jsonl").write_text("a ledger is no stranger")
    (tmp_path / "README.md").write_text("hello")
    (tmp_path / "potrf.sm_80.txt").mkdir()
    with tuned_dir(tmp_path), pytest.warns(BatchlasWarning) as given:
        choices = {pick(POTRF, call(n=n), SM_90) for n in (4, 8, 16)}
    assert choices == {Tiny()}
    expected = (
        f"BATCHLAS_TUNED_DIR={str(tmp_path)!r}: not named <op>.<device>.txt and "
        "skipped: README.md, potrf.sm_80.txt"
    )
    assert [str(each.message) for each in given] == [expected]
    with tuned_dir(tmp_path):  # warnings are errors: it is given once
        assert pick(POTRF, call(n=32), SM_90) == Tiny()


def test_an_override_that_is_no_folder_is_ignored_with_one_warning(tmp_path):
    set_builtin_tables({FILE: table(row("tiny 1"))})
    missing = tmp_path / "missing"
    with tuned_dir(missing), pytest.warns(BatchlasWarning, match="is not a folder"):
        assert pick(POTRF, call(), SM_90) == Tiny()
    with tuned_dir(missing):
        assert pick(POTRF, call(n=4), SM_90) == Tiny()
    reset_warnings()
    with tuned_dir(missing), pytest.warns(BatchlasWarning, match="is not a folder"):
        pick(POTRF, call(n=4), SM_90)


def test_the_store_is_kept_while_nothing_changes(tmp_path):
    now = settings()
    assert store.table_store(now) is store.table_store(now)
    later = replace(now, generation=now.generation + 1)
    assert store.table_store(later) is store.table_store(now)
    elsewhere = Settings(tuned_dir=str(tmp_path))
    assert store.table_store(elsewhere) is not store.table_store(now)


def test_the_store_lists_its_files(tmp_path):
    set_builtin_tables({FILE: "", "syev.sm_90.txt": ""})
    (tmp_path / FILE).write_text("")
    with tuned_dir(tmp_path):
        files = store.table_store(settings()).files("potrf")
    assert [(each.device, each.place) for each in files] == [
        ("sm_90", store.Place.OVERRIDE),
        ("sm_90", store.Place.SHIPPED),
    ]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return a folder that stands for the installed package."""
    monkeypatch.setattr(store.resources, "files", lambda _name: tmp_path)
    return tmp_path


def test_shipped_tables_lie_in_the_package(package):
    (package / "tuned").mkdir()
    for name in ("syev.sm_90.txt", FILE, "README.md"):
        (package / "tuned" / name).write_text(f"I am {name}")
    files = store.shipped_files()
    assert [each.name for each in files] == [FILE, "syev.sm_90.txt"]
    assert files[0].read() == b"I am potrf.sm_90.txt"
    (package / "tuned" / "potrf.txt").write_text("")
    with pytest.raises(TableError, match=r"^potrf\.txt:1: "):
        store.shipped_files()


def test_a_checkout_keeps_them_beside_the_package(package, monkeypatch):
    home = package / "checkout"
    (home / "tuned").mkdir(parents=True)
    (home / "tuned" / FILE).write_text("")
    monkeypatch.setattr(store, "__file__", str(home / "batchlas/_select/store.py"))
    assert [each.name for each in store.shipped_files()] == [FILE]
    (home / "tuned" / FILE).unlink()
    Path(home / "tuned").rmdir()
    assert store.shipped_files() == []
