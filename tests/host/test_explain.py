"""explain: the same decision as the call's own, in words."""

from __future__ import annotations

import numpy as np
import pytest
from calls import CALLS
from families import definite
from interpreter import run_python

import batchlas
from batchlas._select.testing import set_builtin_tables, use_shipped_tables

TABLE = """\
# op=syev device=cpu_avx512 batchlas=1a2b3c4 kernels=0123abcd source=measured
# keys: dtype:exact jobz:exact n:log batch:log
dtype=float64 jobz=V n=8 batch=100 | threads 0.5 | vendor 0.75
"""


@pytest.fixture
def _table():
    from batchlas._runtime.devices import host_cpu_key

    key, _ = host_cpu_key()
    text = TABLE.replace("cpu_avx512", key)
    set_builtin_tables({f"syev.{key}.txt": text})
    yield
    use_shipped_tables()


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("family", ["vendor", "threads"])
def test_a_pin_is_told(family, call):
    pins = {f"BATCHLAS_{op}_ROUTE": family for op in ("POTRF", "SYEV", "GESVD")}
    with batchlas.scoped_env(**pins):
        told = batchlas.explain(call.name, definite(3, 4, 4), **call.options)
    assert told.function == call.name
    assert told.choice == family
    assert "pin" in str(told)


@pytest.mark.usefixtures("_table")
def test_the_row_that_decided_is_told():
    told = batchlas.explain("eigh", np.zeros((90, 8, 8)))
    assert told.choice == "threads"
    text = str(told)
    assert "eigh -> syev: threads" in text
    assert "n=8 batch=90" in text
    assert "txt:3" in text
    assert "0.5 ms" in text
    assert "0.75 ms" in text


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_explain_agrees_with_the_trace_of_the_call(call, capfd):
    stack = definite(7, 5, 5)
    told = batchlas.explain(call.name, stack, **call.options)
    with batchlas.scoped_env(BATCHLAS_SELECT_TRACE="1"):
        call(stack)
    assert f"-> {told.choice} " in capfd.readouterr().err


def test_nothing_runs():
    told = batchlas.explain("cholesky", np.full((2, 2), np.nan))
    assert told.choice


def test_an_unknown_function():
    with pytest.raises(ValueError, match=r"allowed: cholesky, .*svdvals"):
        batchlas.explain("qr", np.eye(2))


def test_an_empty_stack_runs_nothing():
    with pytest.raises(ValueError, match="empty"):
        batchlas.explain("eigh", np.empty((0, 2, 2)))


def test_an_unknown_option():
    with pytest.raises(TypeError, match="lower"):
        batchlas.explain("cholesky", np.eye(2), lower=True)


def test_it_works_with_numpy_alone():
    code = """
    import sys
    for library in ("dpctl", "dpnp", "cupy"):
        sys.modules[library] = None
    import numpy as np, batchlas
    print(batchlas.explain("svd", np.eye(3)))
    """
    assert "svd -> gesvd: " in run_python(code).stdout
