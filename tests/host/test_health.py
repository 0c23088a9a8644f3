"""The check of the host's BLAS: statements 137 to 143 of the specification."""

from __future__ import annotations

import os

import numpy as np
import pytest
from calls import CALLS
from families import definite
from interpreter import run_python

import batchlas
from batchlas._runtime import health
from batchlas.exceptions import BatchlasWarning, BlasHealthError

ALLOWED = {"BATCHLAS_ALLOW_UNSAFE": "1"}
VENDOR = {f"BATCHLAS_{op}_ROUTE": "vendor" for op in ("POTRF", "SYEV", "GESVD")}
# What a program does to have a BLAS that is wrong, as OpenBLAS 0.3.20's was.
BREAK = """
from batchlas._runtime import health
product = health._product
def wrong(a, b):
    c = product(a, b)
    if len(a) == 200:
        c[16 * 7, 16 * 3 + 1 :] += 12
    return c
health._product = wrong
"""


@pytest.fixture
def break_products(monkeypatch):
    """Return a function that makes float64 products wrong, by a change of theirs."""
    product = health._product

    def break_by(change):
        monkeypatch.setattr(health, "_product", lambda a, b: change(product(a, b)))
        health.defect.cache_clear()

    yield break_by
    health.defect.cache_clear()


def off_at_200(c):
    if len(c) == 200:
        c[:, 100:] += 3
    return c


def test_this_blas_is_right():
    health.defect.cache_clear()
    assert health.defect() == ""


@pytest.mark.parametrize("n", health.SIZES)
@pytest.mark.parametrize("error", [1e-3, 100.0, np.nan])
def test_a_wrong_product_is_found_at_every_size(break_products, n, error):
    """137, 139: one wrong row of what is sampled is enough, and so is NaN."""

    def off(c):
        if len(c) == n:
            c[0] += error
        return c

    break_products(off)
    assert f"{n}x{n}" in health.defect()


def test_a_product_in_single_precision_is_found(break_products):
    break_products(lambda c: c.astype(np.float32).astype(np.float64))
    assert "128x128" in health.defect()


def test_a_square_of_64_or_256_would_not_show_the_known_defect():
    """137."""
    assert not {64, 256} & set(health.SIZES)


@pytest.mark.parametrize("call", CALLS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_every_call_of_the_library_is_guarded(break_products, call, dtype):
    """139, 140: before the results are used; single precision is computed in double."""
    break_products(off_at_200)
    with batchlas.scoped_env(**VENDOR), pytest.warns(BatchlasWarning) as caught:
        call(definite(2, 3, 3, dtype=dtype))
    with batchlas.scoped_env(**VENDOR):
        call(definite(2, 3, 3, dtype=dtype))  # says it no second time
    (warning,) = caught
    text = str(warning.message)
    assert "200x200 float64 matrices is off by 3" in text
    assert "export OPENBLAS_CORETYPE=" in text


def test_error_refuses_every_call(break_products):
    """142: stricter than the default, hence allowed."""
    break_products(off_at_200)
    with batchlas.scoped_env(**VENDOR, BATCHLAS_BLAS_HEALTH="error"):
        for _ in range(2):
            with pytest.raises(BlasHealthError, match="computes wrongly"):
                batchlas.linalg.eigh(np.eye(3))


def test_off_needs_the_gate(break_products):
    """142: off is unsafe."""
    break_products(off_at_200)
    with (
        batchlas.scoped_env(**VENDOR, **ALLOWED, BATCHLAS_BLAS_HEALTH="off") as now,
    ):
        assert now.blas_health == "off"
        batchlas.linalg.eigh(np.eye(3))
    with (
        pytest.warns(BatchlasWarning, match="BLAS_HEALTH is unsafe"),
        batchlas.scoped_env(BATCHLAS_BLAS_HEALTH="off") as now,
    ):
        assert now.blas_health == "warn"


def test_it_is_checked_once_and_not_by_the_import():
    """139: milliseconds, before the first call of the library."""
    done = run_python(
        """
        import numpy as np, batchlas
        from batchlas._runtime import health
        product, calls = health._product, []
        health._product = lambda a, b: (calls.append(len(a)), product(a, b))[1]
        print(calls)
        for _ in range(3):
            batchlas.linalg.eigh(np.eye(2))
        print(calls)
        """,
        **VENDOR,
    )
    assert done.stdout.split("\n")[:2] == ["[]", "[128, 200, 512]"]


def test_the_variable_is_read_and_never_set(break_products, monkeypatch):
    """141, 143: it takes effect before Python starts, so it can only be advised."""
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Cooperlake")
    break_products(off_at_200)
    with (
        batchlas.scoped_env(**VENDOR),
        pytest.warns(BatchlasWarning, match="OPENBLAS_CORETYPE=Cooperlake is set"),
    ):
        batchlas.linalg.eigh(np.eye(3))
    assert os.environ["OPENBLAS_CORETYPE"] == "Cooperlake"


def test_the_limit_on_blas_threads_is_left_as_it_was():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threadpoolctl.threadpool_info()
        health.defect.cache_clear()
        health.defect()
        assert threadpoolctl.threadpool_info() == before


def test_a_core_type_that_works_is_tried_in_its_own_process():
    """138: what is advised has been seen to be right on this very machine."""
    assert health.working_core_type() in health.CORE_TYPES


def test_no_core_type_works(monkeypatch):
    monkeypatch.setattr(health, "PROBE", "print('still wrong')")
    assert health.working_core_type() is None


def test_the_doctor_says_that_products_are_right():
    done = run_python("from batchlas import doctor; print(doctor.report())")
    assert "float64 products are right at n = 128, 200, 512" in done.stdout


def test_the_doctor_finds_what_helps():
    code = BREAK + "from batchlas import doctor; print(doctor.report())"
    text = run_python(code).stdout
    assert "BROKEN, the product of two 200x200 float64 matrices is off by 12" in text
    assert "before Python starts: export OPENBLAS_CORETYPE=" in text
