"""``python -m batchlas run``: scripts that do not know of batchlas."""

from __future__ import annotations

import pytest
from interpreter import run_module

import batchlas

SCRIPT = """
import sys
import numpy as np
print(sys.argv)
print(__name__, np.linalg.eigh.__module__)
"""


@pytest.fixture
def write(tmp_path):
    def written(text, name="script.py"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return written


def run(*arguments, **options):
    return run_module("-m", "batchlas", "run", *map(str, arguments), **options)


def test_a_script_runs_as_main_with_its_own_arguments(write):
    path = write(SCRIPT)
    done = run(path, "one", "--two", "-h", "--", "3")
    argv, names = done.stdout.splitlines()
    assert argv == str([str(path), "one", "--two", "-h", "--", "3"])
    assert names == "__main__ batchlas.linalg._eigen"


def test_a_script_imports_its_neighbours(write, tmp_path):
    write("value = 42\n", "neighbour.py")
    path = write("import neighbour\nprint(neighbour.value)\n")
    assert run(path, cwd=tmp_path.parent).stdout == "42\n"


def test_names_that_a_script_takes_from_numpy_are_ours(write):
    path = write("from numpy.linalg import svd\nprint(svd.__module__)\n")
    assert run(path).stdout == "batchlas.linalg._svd\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [("pass", 0), ("import sys; sys.exit(3)", 3), ("raise SystemExit", 0)],
)
def test_a_scripts_exit_code_is_ours(text, code, write):
    assert run(write(text), check=False).returncode == code


def test_a_scripts_error_shows(write):
    done = run(write("raise KeyError('mine')"), check=False)
    assert done.returncode == 1
    assert "KeyError: 'mine'" in done.stderr


def test_a_script_that_is_not_there(tmp_path):
    done = run(tmp_path / "absent.py", check=False)
    assert done.returncode == 2
    assert "no such file" in done.stderr
    assert "absent.py" in done.stderr


def test_no_command_at_all():
    done = run_module("-m", "batchlas", check=False)
    assert done.returncode == 2
    assert "doctor" in done.stderr


def test_version():
    done = run_module("-m", "batchlas", "--version")
    assert done.stdout == f"batchlas {batchlas.__version__}\n"
