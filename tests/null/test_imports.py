"""What ``import batchlas`` brings in, in processes of their own."""

from __future__ import annotations

import statistics

import pytest
from interpreter import BLOCK, OPTIONAL, run_python

LIMIT_MS = 150
RUNS = 5

CALLS = """
import numpy as np, batchlas
stack = np.stack([np.eye(3), 2 * np.eye(3)])
assert (batchlas.linalg.cholesky(stack)[1] == np.sqrt(2) * np.eye(3)).all()
assert (batchlas.linalg.eigh(stack)[0] == [[1, 1, 1], [2, 2, 2]]).all()
assert (batchlas.linalg.svd(stack)[1] == [[1, 1, 1], [2, 2, 2]]).all()
assert batchlas.explain("eigh", stack).choice
"""
LOADED = f"""
import sys
print([name for name in {OPTIONAL} if name in sys.modules])
"""


def test_numpy_arrays_run_where_nothing_else_is_installed():
    run_python(BLOCK + CALLS)


@pytest.mark.parametrize("library", OPTIONAL)
def test_numpy_arrays_run_where_one_library_is_missing(library):
    run_python(f"import sys\nsys.modules[{library!r}] = None\n" + CALLS)


def test_the_import_brings_in_no_array_library():
    assert run_python("import batchlas" + LOADED).stdout == "[]\n"


@pytest.mark.parametrize("route", ["vendor", "threads"])
def test_a_numpy_call_brings_in_no_array_library(route):
    """Only dpctl, which says whether the host runs kernels."""
    pins = {f"BATCHLAS_{op}_ROUTE": route for op in ("POTRF", "SYEV", "GESVD")}
    assert run_python(CALLS + LOADED, **pins).stdout in {"[]\n", "['dpctl']\n"}


def test_a_refused_type_brings_in_no_array_library():
    code = """
import batchlas
class Foreign:
    __dlpack__ = None
try:
    batchlas.linalg.eigh(Foreign())
except TypeError:
    pass
"""
    assert run_python(code + LOADED).stdout == "[]\n"


def test_the_import_is_quick():
    """Beyond NumPy's own; in processor time, so that a busy machine does not count."""
    code = """
import time
import numpy
start = time.process_time()
import batchlas
print(1000 * (time.process_time() - start))
"""
    times = [float(run_python(code).stdout) for _ in range(RUNS)]
    assert statistics.median(times) < LIMIT_MS


def test_the_import_prints_and_warns_nothing():
    done = run_python(
        "import warnings\nwarnings.simplefilter('error')\nimport batchlas"
    )
    assert done.stdout == done.stderr == ""


def test_an_exported_runtime_is_left_alone():
    code = "import os, batchlas\nprint(os.environ['OCL_ICD_FILENAMES'])"
    done = run_python(code, OCL_ICD_FILENAMES="mine.so")
    assert done.stdout == "mine.so\n"
