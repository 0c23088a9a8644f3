"""The cuSOLVER adapter on a real GPU: results, failures, sizes and layouts."""

from __future__ import annotations

import numpy as np
import pytest
import stacks

if stacks.gpu_missing():
    pytest.skip(stacks.gpu_missing(), allow_module_level=True)

import cupy
from stacks import (
    DTYPES,
    check_gesvd,
    check_potrf,
    check_syev,
    norm1,
    poisoned,
    positive,
    random,
    symmetric,
    unit,
    wide,
)

from batchlas._vendor import cusolver

pytestmark = pytest.mark.gpu

ORDERS = [1, 2, 3, 4, 5, 6, 7, 8, 16, 17, 32, 33, 64, 100]
BATCHES = [65535, 65536, 65537, 300_000]
SHAPES = [
    *((1, 1), (1, 4), (4, 1), (2, 3), (3, 2), (32, 5), (5, 32), (32, 32)),
    *((33, 1), (1, 33), (40, 7), (7, 40), (33, 33), (64, 100), (100, 64)),
]


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("char", DTYPES)
def test_potrf(char, uplo, n):
    a = positive((3, 2), n, char)
    factor, info = cusolver.potrf(cupy.asarray(poisoned(a, uplo)), uplo)
    assert factor.dtype == char
    assert factor.flags.c_contiguous
    assert info.dtype == np.int32
    assert info.shape == (3, 2)
    assert not info.any()
    check_potrf(a, factor, uplo)


@pytest.mark.parametrize("n", [256, 300])
@pytest.mark.parametrize("char", DTYPES)
def test_potrf_one_matrix(char, n):
    a = positive((), n, char)
    factor, info = cusolver.potrf(cupy.asarray(a), "L")
    assert info.shape == ()
    assert not info
    check_potrf(a, factor, "L")


@pytest.mark.parametrize("n", ORDERS)
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("char", DTYPES)
def test_syev(char, uplo, n):
    a = symmetric((3, 2), n, char)
    b = cupy.asarray(poisoned(a, uplo))
    w, v, info = cusolver.syev(b, uplo, vectors=True)
    assert w.dtype == char.lower()
    assert v.flags.c_contiguous
    assert not info.any()
    check_syev(a, w, v)
    only, none, info = cusolver.syev(b, uplo, vectors=False)
    assert none is None
    assert not info.any()
    error = np.abs(wide(only) - wide(w)).max(-1)
    assert (error <= 64 * n * unit(char) * norm1(a)).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("job", ["none", "thin", "all"])
@pytest.mark.parametrize("char", DTYPES)
def test_gesvd(char, job, shape):
    (m, n), k = shape, min(shape)
    a = random((3, 2, m, n), char)
    u, s, vh, info = cusolver.gesvd(cupy.asarray(a), job)
    assert s.dtype == char.lower()
    assert not info.any()
    want = np.linalg.svd(wide(a), compute_uv=False)
    error = np.abs(wide(s) - want).max(-1)
    assert (error <= 64 * max(m, n) * unit(char) * norm1(a)).all()
    if job == "none":
        assert u is None
        assert vh is None
        return
    full = job == "all"
    assert u.shape == (3, 2, m, m if full else k)
    assert vh.shape == (3, 2, n if full else k, n)
    assert u.flags.c_contiguous
    assert vh.flags.c_contiguous
    check_gesvd(a, u, s, vh)


def shifted(a):
    """Return `a` at an address that is aligned for its real type only."""
    parts = a.reshape(-1).view(a.dtype.char.lower())
    room = cupy.empty(parts.size + 1, parts.dtype)
    room[1:] = parts
    return room[1:].view(a.dtype).reshape(a.shape)


LAYOUTS = {
    "F": cupy.asfortranarray,
    "reversed": lambda a: cupy.ascontiguousarray(a[::-1, :, ::-1, ::-1])[
        ::-1, :, ::-1, ::-1
    ],
    "padded": lambda a: cupy.repeat(cupy.repeat(a, 3, -1), 2, 1)[:, ::2, :, ::3],
    "batch transposed": lambda a: cupy.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(
        0, 1
    ),
    "matrix transposed": lambda a: cupy.ascontiguousarray(a.swapaxes(2, 3)).swapaxes(
        2, 3
    ),
    "broadcast": lambda a: cupy.broadcast_to(a[:1, :1], a.shape),
    "offset by one part": shifted,
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [5, 33])
@pytest.mark.parametrize("char", DTYPES)
def test_layouts_and_inputs_unchanged(char, n, layout):
    a = LAYOUTS[layout](cupy.asarray(positive((3, 2), n, char)))
    before = a.tobytes()
    host = wide(a)
    check_potrf(host, cusolver.potrf(a, "L")[0], "L")
    check_potrf(host, cusolver.potrf(a, "U")[0], "U")
    w, v, _ = cusolver.syev(a, "U", vectors=True)
    check_syev(host, w, v)
    check_gesvd(host, *cusolver.gesvd(a, "thin")[:3])
    check_gesvd(host[..., :3], *cusolver.gesvd(a[..., :3], "all")[:3])
    assert a.tobytes() == before


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("n", [2, 8, 33, 100])
@pytest.mark.parametrize("char", DTYPES)
def test_potrf_info_and_neighbours(char, n, uplo):
    a = positive((n + 5,), n, char)
    good, info = cusolver.potrf(cupy.asarray(a), uplo)
    assert not info.any()
    for j in range(n):  # matrix j + 1 breaks down at its minor of order j + 1
        a[j + 1, j, j] = -1
    a[n + 1] = np.nan
    a[n + 2, (n - 1, 0), (0, n - 1)] = np.inf
    a[n + 3, 0, 0], a[n + 3, n - 1, n - 1] = -1, np.nan  # the earlier failure counts
    factor, info = cusolver.potrf(cupy.asarray(a), uplo)
    assert info.tolist() == [0, *range(1, n + 1), 1, n, 1, 0]
    assert cupy.isnan(factor[1:-1]).all()
    assert (factor[0] == good[0]).all()
    assert (factor[-1] == good[-1]).all()


NON_FINITE = {
    "B1": [[np.inf, 1, 1], [1, 1, 1], [1, 1, 1]],
    "B2": [[1, 2, 3], [1, np.inf, 3], [1, 2, 3]],
    "B3": [[0, 0], [np.nan, np.nan]],
    "B4 of order 2": np.full((2, 2), np.nan),
    "B4 of order 3": np.full((3, 3), np.nan),
    "B4 diagonal": np.diag([1, np.nan, 2]),
    "order 33": np.full((33, 33), -np.inf),
}


@pytest.mark.parametrize("case", NON_FINITE)
@pytest.mark.parametrize("char", DTYPES)
def test_non_finite_matrices_fail_alone(char, case):
    bad = np.array(NON_FINITE[case]).astype(char)
    a = positive((5,), len(bad), char)
    calls = (
        lambda x: cusolver.potrf(x, "L"),
        lambda x: cusolver.syev(x, "L", vectors=True),
        lambda x: cusolver.gesvd(x, "all"),
    )
    good = [call(cupy.asarray(a)) for call in calls]
    a[2] = bad
    for call, clean in zip(calls, good, strict=True):
        *results, info = call(cupy.asarray(a))
        assert info.get()[2] > 0
        assert np.count_nonzero(info.get()) == 1
        for x, y in zip(results, clean[:-1], strict=True):
            assert cupy.isnan(x[2]).all()
            for i in (0, 1, 3, 4):
                assert (x[i] == y[i]).all()


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("char", DTYPES)
def test_large_batches(char, batch):
    host = positive((batch,), 2, char)
    a = cupy.asarray(host)
    factor, info = cusolver.potrf(a, "L")
    assert not info.any()
    check_potrf(host, factor, "L")
    w, v, info = cusolver.syev(a, "L", vectors=True)
    assert not info.any()
    check_syev(host, w, v)
    u, s, vh, info = cusolver.gesvd(a, "all")
    assert not info.any()
    check_gesvd(host, u, s, vh)


@pytest.mark.slow
def test_more_than_2_to_31_elements():
    batch = (1 << 29) + 3
    if cupy.cuda.runtime.memGetInfo()[0] < 48 << 30:
        pytest.skip("needs 48 GiB of free GPU memory")
    a = cupy.broadcast_to(cupy.asarray(positive((), 2, "f")), (batch, 2, 2))
    factor, info = cusolver.potrf(a, "L")
    assert int(cupy.count_nonzero(info)) == 0
    assert bool((factor[-70_000:] == factor[0]).all())
    del factor, info
    cupy.get_default_memory_pool().free_all_blocks()


@pytest.mark.parametrize("n", [8, 40])
@pytest.mark.parametrize("char", DTYPES)
def test_repeated_calls(char, n):
    host = symmetric((512,), n, char)
    a = cupy.asarray(host)
    definite = positive((512,), n, char)
    for _ in range(4):
        # Recycled memory holds whatever it held: here, values that would show.
        cupy.full(1 << 24, 1e30)
        w, v, info = cusolver.syev(a, "L", vectors=True)
        assert not info.any()
        check_syev(host, w, v)
        check_potrf(definite, cusolver.potrf(cupy.asarray(definite), "U")[0], "U")
        check_gesvd(host[:32], *cusolver.gesvd(a[:32], "all")[:3])


FAMILIES = {
    "zero": lambda n: np.zeros((n, n)),
    "identity": np.eye,
    "rank one": lambda n: np.ones((n, n)),
    "repeated": lambda n: -2 * np.ones((n, n)) - 2 * np.eye(n),
    "clustered": lambda n: np.diag(1 + 1e-7 * np.arange(n)),
    "graded": lambda n: np.diag(np.logspace(0, -6, n)),
    "scaled up": lambda n: 1e15 * (np.ones((n, n)) + np.diag(np.arange(n))),
    "scaled down": lambda n: 1e-15 * (np.ones((n, n)) + np.diag(np.arange(n))),
}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [3, 17, 33])
@pytest.mark.parametrize("char", DTYPES)
def test_families(char, n, family):
    a = np.broadcast_to(FAMILIES[family](n).astype(char), (2, n, n))
    w, v, info = cusolver.syev(cupy.asarray(a), "L", vectors=True)
    assert not info.any()
    check_syev(wide(a), w, v)
    u, s, vh, info = cusolver.gesvd(cupy.asarray(a), "all")
    assert not info.any()
    check_gesvd(wide(a), u, s, vh)
