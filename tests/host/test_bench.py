"""Benchmarks: who takes part, that results are checked, and what is told."""

from __future__ import annotations

import csv
import importlib.util

import numpy as np
import pytest
from interpreter import BLOCK, run_module, run_python
from libraries import parameters

import batchlas
from batchlas.bench import peers, race
from batchlas.bench.functions import FUNCTIONS
from batchlas.bench.result import Result, Row, geometric_mean, write_csv
from batchlas.exceptions import BatchlasWarning

QUICK = {"budget": 0.01, "array": "numpy"}


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_function_against_numpy(function, dtype):
    shape = (2, 5, 4, 4) if not function.startswith("svd") else (2, 5, 6, 3)
    result = batchlas.benchmark(function, shape, dtype, against=("numpy",), **QUICK)
    ours, theirs = result.rows
    assert (ours.side, theirs.side) == ("batchlas", "numpy")
    assert theirs.what in {"one thread", "all threads"}
    for row in result.rows:
        assert 0 < row.least_ms <= row.ms
    assert result.batch == 10
    assert result.floor_ms > 0
    assert result.times_faster(theirs) == theirs.ms / ours.ms
    stack = np.ones(shape, dtype)
    options = {"full_matrices": False} if function == "svd" else {}
    assert ours.what == batchlas.explain(function, stack, **options).choice


@pytest.mark.parametrize(("op", "name"), [("potrf", "cholesky"), ("gesvd", "svd")])
def test_lapacks_names_will_do(op, name):
    result = batchlas.benchmark(op, (3, 2, 2), against=("numpy",), **QUICK)
    assert result.function == name


@pytest.mark.parametrize("library", parameters())
def test_every_kind_of_array_against_its_own_library(library):
    result = batchlas.benchmark(
        "eigh", (20, 3, 3), against=(library.name,), array=library.name, budget=0.01
    )
    assert result.array == library.name
    assert [row.side for row in result.rows] == ["batchlas", library.name]
    assert all(row.ms for row in result.rows)


def test_absent_peers_are_listed_and_do_no_harm(monkeypatch):
    monkeypatch.setattr(race, "is_installed", lambda name: name == "numpy")
    result = batchlas.benchmark("cholesky", (4, 2, 2), **QUICK)
    assert {row.side for row in result.rows if row.what == "absent"} == {
        *("dpnp", "cupy", "torch", "jax")
    }
    assert "absent       dpnp, cupy, torch, jax" in str(result)


def _peer(call):
    return lambda _name, _function, **_on: peers.Peer("numpy", np.asarray, call)


def test_a_peer_with_a_wrong_result_is_told_and_not_timed(monkeypatch):
    wrong = _peer(lambda a: (np.linalg.cholesky(a) * 1.0001,))
    monkeypatch.setattr(race, "peer", wrong)
    result = batchlas.benchmark("cholesky", (4, 3, 3), against=("numpy",), **QUICK)
    row = result.rows[1]
    assert row.ms is None
    assert "wrong result" in row.what
    assert result.best_peer is None
    assert "wrong result" in str(result)


def test_a_peer_that_raises_is_told(monkeypatch):
    def fails(_a):
        raise MemoryError("no room for 262,144 matrices")

    monkeypatch.setattr(race, "peer", _peer(fails))
    result = batchlas.benchmark("cholesky", (4, 3, 3), against=("numpy",), **QUICK)
    assert result.rows[1].what.startswith("failed, MemoryError: no room")


def test_our_own_failure_is_raised(monkeypatch):
    def fails(_a, **_options):
        raise ZeroDivisionError

    monkeypatch.setitem(vars(race.linalg), "cholesky", fails)
    with pytest.raises(ZeroDivisionError):
        batchlas.benchmark("cholesky", (4, 3, 3), against=("numpy",), **QUICK)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("qr", (4, 3, 3)), "allowed: cholesky, eigh"),
        (("eigh", (4, 3, 2)), "square"),
        (("eigh", (3, 3)), "three dimensions"),
        (("eigh", (0, 3, 3)), "none of them 0"),
        (("eigh", (4, 3, 3), "float16"), "float16"),
        (("eigh", (4, 3, 3), "float64", ("matlab",)), "unknown peers"),
    ],
)
def test_bad_arguments(arguments, why):
    with pytest.raises(ValueError, match=why):
        batchlas.benchmark(*arguments)


def test_an_array_library_that_is_not_here():
    if importlib.util.find_spec("cupy") is not None:
        pytest.skip("CuPy is installed here")
    with pytest.raises(ValueError, match=r"no cupy arrays here; allowed: .*numpy"):
        batchlas.benchmark("eigh", (4, 3, 3), array="cupy")


def test_batchlas_is_not_compared_with_itself():
    with batchlas.installed(), pytest.raises(RuntimeError, match="uninstall"):
        batchlas.benchmark("eigh", (4, 3, 3))


def test_a_variable_that_slows_numpy_down_is_told(monkeypatch):
    monkeypatch.setenv(race.CORETYPE, "Haswell")
    with pytest.warns(BatchlasWarning, match=race.CORETYPE):
        batchlas.benchmark("cholesky", (4, 3, 3), against=("numpy",), **QUICK)


def result(ours=2.0, theirs=6.0, n=8):
    rows = (
        Row("batchlas", "lane:width=8", ours, ours / 2),
        Row("numpy", "one thread", theirs, theirs / 2),
        Row("torch", "failed, RuntimeError: no"),
        Row("jax", "absent"),
    )
    return Result("eigh", "float64", (5, 100, n, n), "cpu_avx512", "numpy", rows, 0.25)


def test_the_table_as_text():
    assert str(result()).splitlines() == [
        "eigh 5x100x8x8 float64, numpy on cpu_avx512",
        "  batchlas              2 ms          4 us/matrix            lane:width=8",
        "  numpy                 6 ms         12 us/matrix     3.00x  one thread",
        "  torch        failed, RuntimeError: no",
        "  floor              0.25 ms        0.5 us/matrix",
        "  absent       jax",
    ]
    assert [won for _, won in result(theirs=1.0).lines()][:2] == [None, False]


def test_the_rows_as_csv(tmp_path):
    write_csv([result(), result(n=16)], tmp_path / "all.csv")
    with (tmp_path / "all.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 8
    assert rows[1] == {
        "function": "eigh",
        "dtype": "float64",
        "shape": "5x100x8x8",
        "n": "8",
        "batch": "500",
        "device": "cpu_avx512",
        "array": "numpy",
        "side": "numpy",
        "what": "one thread",
        "ms": "6",
        "least_ms": "3",
        "us_per_matrix": "12",
        "times_faster": "3",
        "floor_ms": "0.25",
    }
    assert rows[2]["ms"] == rows[2]["times_faster"] == ""
    result().to_csv(tmp_path / "one.csv")
    assert (tmp_path / "one.csv").read_text().count("\n") == 5


def test_the_mean_of_ratios():
    assert geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)


def test_bytes_that_must_move():
    assert FUNCTIONS["eigh"].moved_bytes((10, 4, 4), "float64") == 10 * 8 * 36
    assert FUNCTIONS["svd"].moved_bytes((10, 6, 4), "float64") == 10 * 8 * 68


COMMAND = ("-m", "batchlas", "bench")
SMALL = ("--orders", "2,4", "--dtypes", "float64", "--batch", "20", "--budget", "0.01")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    pytest.importorskip("matplotlib")
    folder = tmp_path_factory.mktemp("bench")
    words = ("cholesky", *SMALL, "--against", "numpy", "--array", "numpy")
    files = ("--csv", folder / "all.csv", "--plots", folder)
    done = run_module(*map(str, (*COMMAND, *words, *files)))
    return folder, done


def test_the_command_prints_tables_and_a_summary(pictures):
    _, done = pictures
    assert "cholesky 20x2x2 float64" in done.stdout
    assert "cholesky 20x4x4 float64" in done.stdout
    assert "against the best peer" in done.stdout


def test_the_command_writes_csv_and_pictures(pictures):
    folder, done = pictures
    assert len((folder / "all.csv").read_text().splitlines()) == 1 + 2 * 2
    drawn = sorted(folder.glob("*.png"))
    assert len(drawn) == 2
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 10_000
        assert f"wrote {path}" in done.stdout


def test_the_command_starts_again_without_the_variable_that_slows_numpy_down():
    words = ("cholesky", "--orders", "2", *SMALL[2:], "--against", "numpy")
    done = run_module(*COMMAND, *words, OPENBLAS_CORETYPE="Haswell")
    assert "starting without OPENBLAS_CORETYPE" in done.stderr
    assert "Warning" not in done.stderr
    assert "numpy" in done.stdout


@pytest.mark.parametrize(
    ("words", "why"), [(("qr",), "cannot benchmark"), (("--orders", "x"), "--orders")]
)
def test_bad_words(words, why):
    done = run_module(*COMMAND, *words, check=False)
    assert done.returncode == 2
    assert why in done.stderr


def test_pictures_without_matplotlib_say_what_to_install():
    code = BLOCK + (
        "sys.modules['matplotlib'] = None\n"
        "from importlib import util\n"
        "found = util.find_spec\n"
        "util.find_spec = lambda n: None if n == 'matplotlib' else found(n)\n"
        "from batchlas.__main__ import main\n"
        "sys.exit(main(['bench', 'cholesky', '--plots', '.']))\n"
    )
    done = run_python(code, check=False)
    assert done.returncode == 2
    assert "pip install 'batchlas[bench]'" in done.stderr


def test_it_works_where_only_numpy_is():
    code = BLOCK + (
        "import batchlas\n"
        "r = batchlas.benchmark('eigh', (5, 2, 2), against=('numpy',), budget=0.01)\n"
        "print([row.side for row in r.rows])\n"
    )
    assert run_python(code).stdout == "['batchlas', 'numpy']\n"


def test_the_map_tells_what_the_tables_choose():
    from batchlas._select.absent import absent_device
    from batchlas.bench.map import chosen_map

    device = absent_device("sm_90", "cupy")
    drawn = chosen_map(FUNCTIONS["eigh"], "float64", device, (2, 3), (1, 5))
    assert set(drawn.cells) == {(2, 1), (2, 5), (3, 1), (3, 5)}
    assert drawn.cells[2, 1].is_measured
    assert not drawn.cells[3, 5].is_measured
    assert set(drawn.choices) == {cell.choice for cell in drawn.cells.values()}
    assert "vendor" in drawn.library
