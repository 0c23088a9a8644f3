"""The wheel: built, installed where nothing else is, and used."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import batchlas

ROOT = Path(batchlas.__file__).resolve().parents[1]

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not (ROOT / "pyproject.toml").is_file(),
        reason="batchlas is not a checkout here",
    ),
]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel by its own build system; pip brings that in."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """Return the interpreter of a fresh environment that has the wheel alone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    interpreter = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    command = [interpreter, "-m", "pip", "install", "--quiet", str(wheel)]
    subprocess.run([*command, "--disable-pip-version-check"], check=True)
    return interpreter


def tables_of_the_repository():
    return {path.name for path in (ROOT / "tuned").glob("*.txt")}


def test_it_holds_exactly_the_tuned_tables_of_the_repository(names):
    held = {Path(name).name for name in names if name.startswith("batchlas/tuned/")}
    assert {
        name for name in held if name.endswith(".txt")
    } == tables_of_the_repository()


def test_it_holds_every_module(names):
    modules = {str(p.relative_to(ROOT)) for p in (ROOT / "batchlas").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules


def test_it_holds_the_licence_and_the_mark_of_types(names):
    assert "batchlas/py.typed" in names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)


def test_it_holds_nothing_else(names):
    roots = {name.partition("/")[0] for name in names}
    assert {root for root in roots if not root.endswith(".dist-info")} == {"batchlas"}
    assert not [name for name in names if "test_" in name or "__pycache__" in name]


def test_it_works_where_only_it_is_installed(python, tmp_path):
    code = """
import sys, pathlib
import numpy as np, batchlas
assert pathlib.Path(sys.prefix) in pathlib.Path(batchlas.__file__).parents
stack = np.array([[[4.0, 2.0], [2.0, 5.0]], [[9.0, 3.0], [3.0, 2.0]]])
assert (batchlas.linalg.cholesky(stack) == [[[2, 0], [1, 2]], [[3, 0], [1, 1]]]).all()
w, v = batchlas.linalg.eigh(stack)
assert abs(v @ (w[..., None] * v.swapaxes(-1, -2)) - stack).max() < 1e-14
from batchlas._select.store import shipped_files
print(sorted(file.name for file in shipped_files()))
"""
    done = subprocess.run(
        [python, "-I", "-c", code],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{sorted(tables_of_the_repository())}\n"


def test_its_command_is_on_the_path(python, tmp_path):
    done = subprocess.run(
        [python.parent / "batchlas", "doctor"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert f"batchlas   {batchlas.__version__}" in done.stdout
    assert "dpnp       absent" in done.stdout
