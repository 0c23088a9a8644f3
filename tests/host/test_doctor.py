"""The doctor's report: every section, also where something is broken."""

from __future__ import annotations

import pytest
from interpreter import BLOCK, OPTIONAL, run_module, run_python

SECTIONS = ("batchlas", "python", "numpy", "host", "settings", "tables")
OPS = ("potrf", "syev", "gesvd")


def headings(text):
    return [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]


def test_every_section_is_there():
    text = run_module("-m", "batchlas", "doctor").stdout
    for section in (*SECTIONS, *OPTIONAL):
        assert section in headings(text)
    for op in OPS:
        assert f"tables     {op}: " in text
    assert "blas" in text


def test_what_is_absent_is_named_with_the_command_that_brings_it():
    text = run_python(
        BLOCK + "from batchlas import doctor\nprint(doctor.report())"
    ).stdout
    for library in OPTIONAL:
        (line,) = [line for line in text.splitlines() if line.startswith(library)]
        assert "absent" in line
        assert "pip install" in line
    assert set(SECTIONS) <= set(headings(text))


@pytest.mark.parametrize("library", ["cupy", "dask", "dpnp"])
def test_a_broken_library_is_reported_as_broken(library, tmp_path):
    (tmp_path / f"{library}.py").write_text("raise OSError('libgone.so: no such file')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    text = run_python(
        code + "from batchlas import doctor\nprint(doctor.report())"
    ).stdout
    (line,) = [line for line in text.splitlines() if line.startswith(library)]
    assert "BROKEN, OSError: libgone.so: no such file" in line
    assert set(SECTIONS) <= set(headings(text))


def test_settings_that_are_broken_are_reported():
    done = run_module(
        "-m", "batchlas", "doctor", BATCHLAS_NUM_THREADS="many", check=False
    )
    assert done.returncode == 0, done.stderr
    assert "BATCHLAS_NUM_THREADS" in done.stdout
    assert "BROKEN" in done.stdout
    assert set(SECTIONS) <= set(headings(done.stdout))


def test_a_tuned_folder_that_is_broken_is_reported(tmp_path):
    (tmp_path / "potrf.cpu_avx512.txt").write_text("nonsense\n")
    done = run_module("-m", "batchlas", "doctor", BATCHLAS_TUNED_DIR=str(tmp_path))
    assert set(SECTIONS) <= set(headings(done.stdout))


def test_exported_settings_are_named():
    text = run_module("-m", "batchlas", "doctor", BATCHLAS_SELECT_TRACE="1").stdout
    assert "BATCHLAS_SELECT_TRACE set" in text
    assert "select_trace=True" in text
