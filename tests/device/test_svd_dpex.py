"""The SVD families by numba-dpex, in the environment that has it, and who renders them.

Kernels take up to a minute to compile there, so each is compiled for one dtype.
"""

from __future__ import annotations

import numpy as np
import pytest
from checks import ORTHOGONALITY, assert_all_nan, assert_same_bits, assert_svd
from families import GENERAL, general, mixed

import batchlas
from batchlas import linalg

dpnp = pytest.importorskip("dpnp", reason="dpnp is not installed")
pytest.importorskip("numba_dpex", reason="numba-dpex is not installed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of numba-dpex, when it compiles
GATES = {"jacobi": 256, "bidiagonal": ORTHOGONALITY}


def decompose(stack, family, *, renderer="dpex"):
    """Decompose dpnp arrays with a renderer asked for; results on the host."""
    with batchlas.scoped_env(
        BATCHLAS_SYCL_RENDERER=renderer,
        BATCHLAS_GESVD_ROUTE=f"{family}:width=8",
        BATCHLAS_SELECT_TRACE="1",
    ):
        result = linalg.svd_ex(dpnp.asarray(stack), full_matrices=False)
    return [dpnp.asnumpy(part) for part in result]


@pytest.mark.parametrize(
    ("family", "shapes", "dtype"),
    [
        ("jacobi", [(2, 2)], "complex64"),
        ("jacobi", [(3, 3)], "float64"),
        ("jacobi", [(5, 5), (9, 4), (12, 12)], "float64"),
        ("bidiagonal", [(1, 2), (4, 9), (8, 12)], "float32"),
    ],
    ids=str,
)
def test_every_matrix(family, shapes, dtype, capsys):
    for m, n in shapes:
        stack = mixed(GENERAL, n, dtype, m=m)
        u, s, vh, info = decompose(stack, family)
        assert not info.any()
        assert_svd(stack, u, s, vh, orthogonality=GATES[family])
    assert capsys.readouterr().err.count("by dpex") == len(shapes)


def test_what_is_not_finite_fails_alone():
    stack = general(5, 3, 3)
    good = decompose(stack, "jacobi")
    stack[2, 1, 1] = np.nan
    *found, info = decompose(stack, "jacobi")
    assert info.tolist() == [0, 0, 1, 0, 0]
    for part, expected in zip(found, good[:3], strict=True):
        assert_all_nan(part[2])
        assert_same_bits(part[[0, 1, 3, 4]], expected[[0, 1, 3, 4]])


def test_opencl_takes_over_unless_asked_and_says_so(capsys):
    stack = mixed(GENERAL, 5, "float64")
    u, s, vh, info = decompose(stack, "jacobi", renderer="auto")
    assert not info.any()
    assert_svd(stack, u, s, vh, orthogonality=GATES["jacobi"])
    line = "by opencl: not dpex, it compiles these kernels too slowly"
    assert line in capsys.readouterr().err
