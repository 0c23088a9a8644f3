"""``python -m batchlas tune`` on this very machine, at a few tiny shapes."""

from __future__ import annotations

import json

import pytest
from interpreter import run_module, run_python

from batchlas._runtime.devices import host_cpu_key

KEY, _ = host_cpu_key()
FILE = f"potrf.{KEY}.txt"
SMALL = (
    *("--op", "potrf", "--dtype", "float64", "--array", "numpy"),
    *("--orders", "2,3", "--batches", "1,2", "--cell", "5e-3"),
)


def tune(*arguments, check=True, **variables):
    return run_module(
        *("-m", "batchlas", "tune", *map(str, arguments)), check=check, **variables
    )


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Return a home folder in which a user has tuned."""
    folder = tmp_path_factory.mktemp("home")
    done = tune(*SMALL, XDG_DATA_HOME=str(folder))
    assert "4 shapes measured" in done.stderr
    assert "nothing is left to measure" in done.stderr
    return folder


@pytest.fixture(scope="module")
def tuned(home):
    return home / "batchlas" / "tuned"


def test_tables_and_ledger_lie_in_the_users_folder(tuned):
    assert {path.name for path in tuned.iterdir()} == {FILE, f"{KEY}.jsonl"}
    rows = (tuned / FILE).read_text().splitlines()[2:]
    shapes = [row.partition(" |")[0] for row in rows]
    head = "dtype=float64 array=numpy"
    assert shapes == [f"{head} n={n} batch={b}" for n in (2, 3) for b in (1, 2)]


def test_selection_finds_them_by_itself(home):
    code = """
    import numpy as np, batchlas
    batchlas.linalg.cholesky(np.eye(3)[None])
    batchlas.linalg.cholesky(np.eye(3, dtype=np.float32)[None])
    """
    done = run_python(code, XDG_DATA_HOME=str(home), BATCHLAS_SELECT_TRACE="1")
    mine, shipped = done.stderr.splitlines()
    assert mine.endswith(f"[user {KEY}]")
    assert "user" not in shipped


def test_a_second_run_measures_nothing(home, tuned):
    before = (tuned / FILE).read_text()
    done = tune(*SMALL, XDG_DATA_HOME=str(home))
    assert "0 shapes measured" in done.stderr
    assert (tuned / FILE).read_text() == before
    assert done.stdout == f"{tuned / FILE}\n"


def test_check_agrees_and_sees_an_edit_and_a_missing_table(tuned, tmp_path):
    ledger = ("--ledger", tuned / f"{KEY}.jsonl")
    check = ("--op", "potrf", "--check", "--out", tmp_path, *ledger)
    text = (tuned / FILE).read_text()
    (tmp_path / FILE).write_text(text)
    assert tune(*check).stderr == ""
    (tmp_path / FILE).write_text(text.replace("batch=2", "batch=5"))
    done = tune(*check, check=False)
    assert done.returncode == 1
    assert f"{FILE}: not what the ledger gives" in done.stderr
    (tmp_path / FILE).unlink()
    assert tune(*check, check=False).returncode == 1


def test_check_warns_of_kernels_that_have_changed(tuned, tmp_path):
    records = (tuned / f"{KEY}.jsonl").read_text().splitlines()
    old = [{**json.loads(line), "kernels": "00000000"} for line in records]
    ledger = tmp_path / f"{KEY}.jsonl"
    ledger.write_text("".join(json.dumps(each) + "\n" for each in old))
    table = (tuned / FILE).read_text()
    now = json.loads(records[0])["kernels"]
    (tmp_path / FILE).write_text(table.replace(now, "00000000"))
    done = tune("--op", "potrf", "--check", "--out", tmp_path, "--ledger", ledger)
    assert f"{FILE}: stale, measured with other kernels" in done.stderr


def test_a_table_with_holes_is_not_written(tmp_path):
    done = tune(*SMALL, "--out", tmp_path, "--budget", "0")
    assert "potrf: no table yet" in done.stderr
    assert not (tmp_path / FILE).exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--device", "sm_1"), "no such device; here are: "),
        (("--budget", "soon"), "--budget"),
        (("--orders", "0,2"), "size below 1"),
        (("--op", "qr"), "invalid choice"),
    ],
)
def test_bad_arguments(arguments, why, tmp_path):
    done = tune(*SMALL, *arguments, "--out", tmp_path, check=False)
    assert done.returncode == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("device", ["cpu_avx512", "sm_90"])
def test_the_shipped_tables_are_what_the_ledgers_give(device):
    from interpreter import ROOT

    ledger = ROOT / "benchmarks" / "ledgers" / f"{device}.jsonl"
    if not ledger.is_file():
        pytest.skip("batchlas is not a checkout here")
    done = tune("--check", "--out", ROOT / "tuned", "--ledger", ledger, check=False)
    assert done.returncode == 0, done.stderr


def test_the_check_between_the_rows(home):
    from interpreter import ROOT

    script = ROOT / "benchmarks" / "check_off_grid.py"
    if not script.is_file():
        pytest.skip("batchlas is not a checkout here")
    words = ("--op", "potrf", "--dtype", "float64", "--array", "numpy", "--shapes", "2")
    done = run_module(
        str(script), *words, "--cell", "0.005", check=False, XDG_DATA_HOME=str(home)
    )
    assert done.stderr == ""
    *shapes, summary = done.stdout.splitlines()
    assert summary.startswith("2 shapes off the grid, ")
    assert len(shapes) == 2
    assert all("potrf float64 numpy L n=" in line for line in shapes)
    assert 0 <= done.returncode <= 2
