"""The families jacobi and ql by numba-dpex, in the environment that has it."""

from __future__ import annotations

import numpy as np
import pytest
from checks import assert_all_nan, assert_eigh, assert_same_bits, assert_values

import batchlas
from batchlas._kernels import eigen_dpex
from batchlas._kernels.eigen import triangle
from batchlas._kernels.limits import JACOBI_LARGEST, QL_LARGEST

dpnp = pytest.importorskip("dpnp", reason="dpnp is not installed")
pytest.importorskip("numba_dpex", reason="numba-dpex is not installed")

from batchlas._backends import dpnp as backend  # noqa: E402 - it imports dpnp
from batchlas._ops.syev import QL, Jacobi, SyevCall, can_run  # noqa: E402 - beside it

pytestmark = pytest.mark.filterwarnings("ignore")  # of numba-dpex, when it compiles
BATCH = 19
# Each kernel takes many seconds to compile: one of `ql` for all orders of a dtype.
CASES = {
    "jacobi-float64": (eigen_dpex.jacobi, "float64", "L", True, (2,)),
    "jacobi-values": (eigen_dpex.jacobi, "complex64", "U", False, (2, 3)),
    "ql-float64": (eigen_dpex.ql, "float64", "L", True, (1, 2, 3, 8, 17, 33)),
    "ql-complex64": (eigen_dpex.ql, "complex64", "U", True, (2, 5, 12)),
    "ql-values": (eigen_dpex.ql, "float32", "U", False, (1, 3, 16)),
}


def hermitian(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.standard_normal((BATCH, n, n)).astype(dtype)
    if a.dtype.kind == "c":
        a = (a + 1j * rng.standard_normal(a.shape)).astype(dtype)
    return np.ascontiguousarray(a + a.swapaxes(-1, -2).conj())


def solved(run, stack, uplo, vectors):
    """Launch on a part of a longer array; return the results on the host."""
    longer = dpnp.asarray(np.concatenate([stack[:1], stack]))
    a = longer[1:]
    real = stack.real.dtype
    w = dpnp.full(a.shape[:2], 7, dtype=real)
    v = [dpnp.full(a.shape, 7, dtype=a.dtype)] if vectors else []
    info = dpnp.full(len(stack), -1, dtype=np.int32)
    run((a, w, *v, info), triangle(uplo, by_columns=False))
    np.testing.assert_array_equal(dpnp.asnumpy(longer)[1:], stack)
    return [dpnp.asnumpy(x) for x in (w, *v, info)]


@pytest.mark.parametrize(
    ("run", "dtype", "uplo", "vectors", "orders"),
    [
        pytest.param(*case, id=name, marks=[pytest.mark.slow] * name.startswith("ql-c"))
        for name, case in CASES.items()
    ],
)
def test_every_matrix_and_a_bad_one(run, dtype, uplo, vectors, orders):
    for n in orders:
        whole = hermitian(n, dtype)
        other = np.triu_indices(n, 1) if uplo == "L" else np.tril_indices(n, -1)
        stack = whole.copy()
        stack[(slice(None), *other)] = np.nan
        w, *v, info = solved(run, stack, uplo, vectors)
        assert not info.any()
        assert_values(whole, w, np.linalg.eigvalsh(whole).astype(w.dtype))
        if vectors:
            assert_eigh(whole, w, v[0])
        stack[4, n - 1, n - 1] = np.inf
        *found, status = solved(run, stack, uplo, vectors)
        assert np.flatnonzero(status).tolist() == [4]
        rest = np.arange(BATCH) != 4
        for one, before in zip(found, (w, *v), strict=True):
            assert_all_nan(one[4])
            assert_same_bits(one[rest], before[rest])


def test_the_public_call_runs_it(monkeypatch):
    calls = []

    def counted(arrays, side):
        calls.append(side)
        return run(arrays, side)

    run = eigen_dpex.ql
    monkeypatch.setattr(eigen_dpex, "ql", counted)
    stack = hermitian(6, "float64").reshape(BATCH, 1, 6, 6)
    with batchlas.scoped_env(BATCHLAS_SYEV_ROUTE="ql:8"):
        w, v = batchlas.linalg.eigh(dpnp.asarray(stack))
    assert calls == [triangle("L", by_columns=False)]
    assert_eigh(stack, dpnp.asnumpy(w), dpnp.asnumpy(v))


def test_what_can_run():
    device = backend.device(dpnp.empty(1))

    def runs(choice, n):
        return can_run(choice, SyevCall("complex128", "dpnp", "V", n, 2), device)

    assert runs(QL(8), QL_LARGEST)
    assert not runs(QL(8), QL_LARGEST + 1)
    assert runs(Jacobi(8), JACOBI_LARGEST)
    assert not runs(Jacobi(8), JACOBI_LARGEST + 1)
