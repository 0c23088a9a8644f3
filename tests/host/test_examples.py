"""The examples run, and the demo's checks would notice a wrong result."""

import importlib
import os
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import batchlas

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
FUNCTIONS = ("cholesky", "eigh", "svd")
OUTPUTS = [
    (f, i) for f, n in (("cholesky", 1), ("eigh", 2), ("svd", 3)) for i in range(n)
]
TENSOR = np.array([[2.0, 1.0], [1.0, 3.0]])

# Executes a notebook in a process of its own: the client leaves its sockets open, which
# pytest would count as an error. With no folder to look into for kernels, "python3" is
# ipykernel in this very interpreter, whatever is registered on the machine.
EXECUTE = """
import sys
import nbformat
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=4)
kernels = KernelSpecManager(kernel_dirs=[])
kernel = AsyncKernelManager(kernel_name="python3", kernel_spec_manager=kernels)
NotebookClient(notebook, km=kernel, timeout=200).execute()
nbformat.write(notebook, sys.argv[2])
"""


def run(*arguments, cwd, **variables):
    """Run Python as a user would from the repository; return the finished process."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    kept = {k: v for k, v in os.environ.items() if not k.startswith("BATCHLAS_")}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        check=False,
        cwd=cwd,
        encoding="utf-8",
        env={**kept, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8", **variables},
    )


@pytest.fixture
def checks(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("demo_checks")


@pytest.fixture
def demo(monkeypatch):
    for library in ("matplotlib", "rich", "skimage"):
        pytest.importorskip(library)
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("demo")


def has_sycl_device():
    if find_spec("dpnp") is None:
        return False
    import dpctl

    return bool(dpctl.get_devices())


def assert_is_picture(path):
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    assert width > 800
    assert height > 800
    assert len(data) > 50_000


def assert_all_functions_listed(text):
    for function in FUNCTIONS:
        assert function in text


def test_demo(tmp_path):
    pytest.importorskip("rich")
    pytest.importorskip("skimage")
    done = run(EXAMPLES / "demo.py", "--quick", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WRONG" not in done.stderr
    assert_all_functions_listed(done.stdout)
    assert "Every matrix of every result meets its definition" in done.stdout
    assert "NumPy arrays, " in done.stdout
    assert ("dpnp arrays, " in done.stdout) == has_sycl_device()
    assert_is_picture(tmp_path / "out" / "demo.png")


def test_demo_without_dpnp(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "dpnp", None)
    out = tmp_path / "picture.png"
    assert demo.main(["--quick", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert_all_functions_listed(printed)
    assert "dpnp is not installed (pip install 'batchlas[sycl]')" in printed
    assert "dpnp arrays" not in printed
    assert_is_picture(out)


def test_demo_says_that_there_is_no_device(demo, monkeypatch, capsys):
    dpctl = pytest.importorskip("dpctl")
    pytest.importorskip("dpnp")
    monkeypatch.setattr(dpctl, "get_devices", list)
    kinds = demo.array_kinds(demo.Console(width=200))
    assert [kind.name for kind in kinds] == ["NumPy"]
    assert "dpnp finds no device" in capsys.readouterr().out


def test_demo_notices_one_wrong_matrix(demo, tmp_path, monkeypatch, capsys):
    def perturbed(a):
        w, v = eigh(a)
        v[len(v) // 2, 0, 0] += 1e-12
        return w, v

    eigh = batchlas.linalg.eigh
    monkeypatch.setitem(sys.modules, "dpnp", None)
    monkeypatch.setattr(batchlas.linalg, "eigh", perturbed)
    assert demo.main(["--quick", "--out", str(tmp_path / "picture.png")]) == 1
    output = capsys.readouterr()
    assert "WRONG: NumPy eigh of 2x2: residual of 1 of 30,976 matrices" in output.err
    assert "WRONG: NumPy eigh of 16x16: orthogonality" in output.err
    assert "svd of" not in output.err
    assert "Every matrix" not in output.out


def test_demo_notices_another_kind_of_array(demo, tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "dpnp", None)
    monkeypatch.setattr(
        batchlas.linalg, "cholesky", lambda a: np.linalg.cholesky(a).tolist()
    )
    assert demo.main(["--quick", "--out", str(tmp_path / "picture.png")]) == 1
    assert "a list came back for NumPy" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_checks_pass_what_is_right(checks, function, dtype):
    a = np.stack([TENSOR, 1e6 * TENSOR, 1e-6 * TENSOR]).astype(dtype)
    report = checks.check(function, a, getattr(np.linalg, function)(a))
    assert report.faults == ()
    assert report.residual < 10
    assert (report.orthogonality is None) == (function == "cholesky")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e-12])
@pytest.mark.parametrize(("function", "output"), OUTPUTS)
def test_checks_notice_one_wrong_entry(checks, function, output, value):
    a = np.stack([TENSOR, TENSOR, TENSOR])
    result = getattr(np.linalg, function)(a)
    outputs = [result] if function == "cholesky" else list(result)
    outputs[output][(1,) + (0,) * (outputs[output].ndim - 1)] += value
    with np.errstate(invalid="ignore"):
        report = checks.check(function, a, tuple(outputs))
    assert any("1 of 3 matrices" in fault for fault in report.faults)
    assert any("matrix 1 has" in fault for fault in report.faults)


def swapped(w, v):
    return w[:, ::-1], v[..., ::-1]


def negated(u, s, vh):
    return -u, -s, vh


def reversed_order(u, s, vh):
    return u[..., ::-1], s[:, ::-1], vh[:, ::-1]


def negative_diagonal(factor):
    return -factor


def rotated(factor):
    return factor @ np.array([[0.6, -0.8], [0.8, 0.6]])


def single_precision(w, v):
    return w.astype("f4"), v.astype("f4")


@pytest.mark.parametrize(
    ("function", "change", "said"),
    [
        ("eigh", swapped, "ascending"),
        ("eigh", single_precision, "float32"),
        ("svd", negated, "non-negative"),
        ("svd", reversed_order, "descending"),
        ("cholesky", negative_diagonal, "positive on its diagonal"),
        ("cholesky", rotated, "zero above its diagonal"),
    ],
)
def test_checks_notice_a_factorisation_of_another_form(checks, function, change, said):
    a = np.stack([TENSOR, 2 * TENSOR])
    result = getattr(np.linalg, function)(a)
    outputs = (result,) if function == "cholesky" else tuple(result)
    changed = change(*outputs)
    report = checks.check(function, a, changed)
    assert any(said in fault for fault in report.faults)


def test_plain_script_runs_unchanged_in_batchlas(tmp_path):
    script = EXAMPLES / "plain_numpy.py"
    assert "import batchlas" not in script.read_text(encoding="utf-8")
    plain = run(script, cwd=tmp_path, BATCHLAS_SELECT_TRACE="1")
    ours = run("-m", "batchlas", "run", script, cwd=tmp_path, BATCHLAS_SELECT_TRACE="1")
    assert plain.returncode == 0, plain.stderr
    assert ours.returncode == 0, ours.stderr
    assert plain.stderr == ""
    assert "WRONG" not in plain.stdout
    assert ours.stdout == plain.stdout
    stacks = plain.stdout.count(" matrices of order ")
    traced = [line for line in ours.stderr.splitlines() if line.startswith("batchlas:")]
    for op in ("syev", "potrf", "gesvd"):
        assert sum(f"batchlas: {op} float64" in line for line in traced) == stacks
    assert stacks >= 4


def test_notebook(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("nbclient")
    source, executed = EXAMPLES / "stacks.ipynb", tmp_path / "executed.ipynb"
    cells = nbformat.read(source, as_version=4).cells
    assert not any(cell.get("outputs") for cell in cells), "strip its outputs"
    folders = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR")
    own = {variable: str(tmp_path / variable.lower()) for variable in folders}
    done = run("-c", EXECUTE, source, executed, cwd=tmp_path, **own)
    assert done.returncode == 0, done.stderr
    notebook = nbformat.read(executed, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    printed = nbformat.writes(notebook)
    assert "2 of 20000 matrices failed" in printed
    assert "eigh -> syev" in printed


def test_notebook_that_fails_is_noticed(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    pytest.importorskip("nbclient")
    cell = nbformat.v4.new_code_cell("import batchlas; batchlas.explain('nothing', 1)")
    notebook = nbformat.v4.new_notebook(cells=[cell])
    source = tmp_path / "failing.ipynb"
    nbformat.write(notebook, source)
    done = run("-c", EXECUTE, source, tmp_path / "executed.ipynb", cwd=tmp_path)
    assert done.returncode != 0
    assert "explain('nothing')" in done.stderr
