"""What the coverage CSV records."""

import csv
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from select_cases import (
    CPU,
    POTRF,
    SM_90,
    Tiny,
    Vendor,
    call,
    op_spec,
    row,
    table,
)

from batchlas._runtime.settings import scoped_env
from batchlas._select import ScopedPin, coverage, decide, link, no_vendor, run
from batchlas._select.testing import reset_coverage, set_builtin_tables
from batchlas.exceptions import LinAlgError, NoRouteError

HERE = Path(__file__).parent
NO_VENDOR = replace(SM_90, has_vendor=False)


@pytest.fixture(autouse=True)
def _unlinked():
    set_builtin_tables({"potrf.sm_90.txt": table(row("tiny 1 | vendor 2"))})
    yield
    link(())


@pytest.fixture
def coverage_on(tmp_path):
    with scoped_env(BATCHLAS_COVERAGE_OUT=str(tmp_path / "cov")):
        yield tmp_path / "cov"


def nothing(_choice):
    return None


def rows(kind):
    return [each for each in coverage.table_rows() if each["kind"] == kind]


def only(found):
    assert len(found) == 1, found
    return found[0]


@pytest.mark.usefixtures("coverage_on")
def test_a_reached_row_with_the_trace_off(capsys):
    run(POTRF, call(n=7, batch=1000), SM_90, nothing)
    assert capsys.readouterr().err == ""
    assert only(rows("reached")) == {
        "kind": "reached",
        "op": "potrf",
        "scalar": "float64",
        "backend": "cupy",
        "uplo": "L",
        "shape_class": "n=8 batch=1024",
        "chosen_origin": "native",
        "chosen_algo": "tiny",
        "n": 7,
        "batch": 1000,
        "native_route_existed": 1,
        "native_route_supported": 1,
        "calls": 1,
    }


@pytest.mark.usefixtures("coverage_on")
def test_calls_of_one_class_share_a_row_that_keeps_the_first_sizes():
    for n in (5, 8, 6, 8):
        run(POTRF, call(n=n), SM_90, nothing)
    found = only(rows("reached"))
    assert (found["n"], found["calls"], found["shape_class"]) == (
        5,
        4,
        "n=8 batch=1024",
    )


@pytest.mark.usefixtures("coverage_on")
@pytest.mark.parametrize(
    ("asked", "device", "pin"),
    [
        (call(n=9), SM_90, "auto"),
        (call(batch=2000), SM_90, "auto"),
        (call(uplo="U"), SM_90, "auto"),
        (call(dtype="float32"), SM_90, "auto"),
        (call(), CPU, "auto"),
        (call(), SM_90, "cta"),
    ],
)
def test_what_makes_a_row_distinct(asked, device, pin):
    run(POTRF, call(), SM_90, nothing)
    with ScopedPin("potrf", pin):
        run(POTRF, asked, device, nothing)
    assert [each["calls"] for each in rows("reached")] == [1, 1]


@pytest.mark.usefixtures("coverage_on")
def test_vendor_rows_and_native_flags():
    vendor_only = op_spec("a", candidates=lambda _dtype, _kind: (Vendor(),))
    idle_native = op_spec("b", candidates=lambda _dtype, _kind: (Tiny(), Vendor()))
    for spec in (vendor_only, idle_native):
        run(spec, call(n=64), SM_90, nothing)
    with ScopedPin("b", "vendor"):
        run(idle_native, call(n=8), SM_90, nothing)
    found = rows("reached")
    assert [each["chosen_origin"] for each in found] == ["vendor"] * 3
    assert [each["library"] for each in found] == ["lapack"] * 3
    assert [
        (each["native_route_existed"], each["native_route_supported"]) for each in found
    ] == [(0, 0), (1, 0), (1, 1)]


def test_key_values_that_are_no_sizes_stay_in_the_class():
    class Asked(tuple):
        __slots__ = ()

        def _asdict(self):
            keys = ("dtype", "jobz", "side", "m", "q")
            return dict(zip(keys, self, strict=True))

    asked = Asked(("float32", "V", "L", 100, 1))
    assert coverage.shape_class(asked) == "jobz=V m=128 q=1"


@pytest.mark.usefixtures("coverage_on")
def test_misses_are_counted_per_op_dtype_and_backend():
    impossible = call(n=100, uplo="U")
    for _ in range(2):
        with pytest.raises(NoRouteError):
            run(POTRF, impossible, NO_VENDOR, nothing)
    with pytest.raises(NoRouteError):
        decide(POTRF, impossible, NO_VENDOR)  # asked, not called
    assert rows("reached") == []
    assert only(rows("miss")) == {
        "kind": "miss",
        "op": "potrf",
        "scalar": "float64",
        "backend": "cupy",
        "library": "lapack",
        "native_route_existed": 1,
        "native_route_supported": 0,
        "calls": 2,
    }


@pytest.mark.usefixtures("coverage_on")
def test_a_launch_without_its_library_is_a_miss_and_not_reached():
    def launch(_choice):
        no_vendor(POTRF, call(), SM_90)

    with pytest.raises(NoRouteError):
        run(POTRF, call(), SM_90, launch)
    assert rows("reached") == []
    assert only(rows("miss"))["calls"] == 1


@pytest.mark.usefixtures("coverage_on")
def test_a_launch_that_fails_for_its_own_reason_was_reached():
    def launch(_choice):
        raise LinAlgError

    with pytest.raises(LinAlgError):
        run(POTRF, call(), SM_90, launch)
    assert only(rows("reached"))["calls"] == 1


def test_nothing_is_counted_when_it_is_off():
    run(POTRF, call(), SM_90, nothing)
    with pytest.raises(NoRouteError):
        no_vendor(POTRF, call(), NO_VENDOR)
    with scoped_env(BATCHLAS_SELECT_TRACE="1"):
        run(POTRF, call(), SM_90, nothing)
    assert coverage.table_rows() == []


def test_linked_rows_are_the_inventory():
    link([POTRF])
    found = coverage.table_rows()
    assert [(each["backend"], each["chosen_algo"]) for each in found] == [
        *[("numpy", name) for name in ("tiny", "blocked", "vendor")],
        *[
            (kind, name)
            for kind in ("dpnp", "cupy")
            for name in (
                *("tiny", "cta", "lpanel:panel=8", "lpanel:panel=16"),
                *("blocked", "vendor"),
            )
        ],
    ]
    assert {each["scalar"] for each in found} == {"float32"}
    assert {each["calls"] for each in found} == {0}
    assert found[0]["native_route_existed"] == 1
    assert found[0]["native_route_supported"] == -1
    assert [each["library"] for each in found[:3]] == ["", "", "lapack"]
    assert [each["chosen_origin"] for each in found[1:3]] == ["native", "vendor"]


def test_an_op_is_linked_once():
    with pytest.raises(ValueError, match="ops declared twice: potrf"):
        link([POTRF, op_spec("syev"), op_spec()])


def test_writing_needs_a_path(coverage_on):
    coverage.write()
    path = Path(f"{coverage_on}.{os.getpid()}")
    with path.open(newline="") as file:
        assert list(csv.reader(file)) == [list(coverage.COLUMNS)]
    path.unlink()
    with scoped_env(BATCHLAS_COVERAGE_OUT=None):
        coverage.write()
    assert not path.exists()


def test_a_path_that_was_in_force_while_counting_is_written_at_exit(coverage_on):
    run(POTRF, call(), SM_90, nothing)
    with scoped_env(BATCHLAS_COVERAGE_OUT=None):
        coverage.write()
    assert Path(f"{coverage_on}.{os.getpid()}").read_text().count("reached") == 1
    reset_coverage()
    assert coverage.table_rows() == []


PROGRAM = """
import os, sys
sys.path.insert(0, {here!r})
from select_cases import POTRF, SM_90, CPU, call
from batchlas._select import link, no_vendor, run
from batchlas.exceptions import NoRouteError
from batchlas._select.testing import set_builtin_tables
set_builtin_tables({{}})
link([POTRF])
run(POTRF, call(), SM_90, lambda choice: None)
if hasattr(os, "fork") and {fork}:
    child = os.fork()
    if child == 0:
        run(POTRF, call(n=2), SM_90, lambda choice: None)
        sys.exit()  # unlike os._exit, this runs what is registered for exit
    os.waitpid(child, 0)
try:
    no_vendor(POTRF, call(), CPU)
except NoRouteError:
    pass
"""


def csv_files(folder, *, fork):
    environment = {
        **os.environ,
        "BATCHLAS_COVERAGE_OUT": str(folder / "cov"),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    program = PROGRAM.format(here=str(HERE), fork=fork)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")
    files = [path.read_text() for path in folder.glob("cov.*")]
    return sorted((list(csv.DictReader(text.splitlines())) for text in files), key=len)


def test_the_file_is_written_at_exit(tmp_path):
    (found,) = csv_files(tmp_path, fork=False)
    kinds = [each["kind"] for each in found]
    assert kinds == ["linked"] * 15 + ["reached", "miss"]
    assert list(found[0]) == list(coverage.COLUMNS)
    assert (found[15]["chosen_algo"], found[15]["calls"]) == ("blocked", "1")
    assert (found[15]["n"], found[15]["m"], found[15]["transA"]) == ("8", "", "")
    assert (found[16]["backend"], found[16]["library"]) == ("numpy", "lapack")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_forked_child_counts_for_itself(tmp_path):
    child, parent = csv_files(tmp_path, fork=True)
    assert [e["n"] for e in child if e["kind"] == "reached"] == ["2"]
    assert [e["n"] for e in parent if e["kind"] == "reached"] == ["8"]
