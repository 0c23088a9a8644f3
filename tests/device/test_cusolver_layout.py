"""The cuSOLVER adapter without a GPU: layouts, triangles, pieces, NaN and info."""

from __future__ import annotations

import host_cupy
import numpy as np
import pytest
import stage_host

pytestmark = pytest.mark.skipif(
    stage_host.compiler() is None, reason="no C++ compiler builds stage.cu for the host"
)
DTYPES = "fdFD"
POISON = np.nan


@pytest.fixture(scope="module")
def cusolver(tmp_path_factory):
    with host_cupy.adapter(tmp_path_factory.mktemp("stage")) as module:
        yield module


def random(shape, char, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    if char in "FD":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(char)


def positive(batch, n, char):
    a = random((*batch, n, n), char)
    return (a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)).astype(char)


def poisoned(a, uplo):
    """Return `a` with NaN in the triangle that must not be read."""
    n = a.shape[-1]
    read = np.tri(n, dtype=bool) if uplo == "L" else np.tri(n, dtype=bool).T
    b = np.where(read, a, a.dtype.type(POISON))
    if b.dtype.kind == "c":
        b.imag[..., range(n), range(n)] = POISON  # nor is this
    return b


LAYOUTS = {
    "C": lambda a: a,
    "F": np.asfortranarray,
    "reversed": lambda a: np.ascontiguousarray(a[::-1, :, ::-1, ::-1])[
        ::-1, :, ::-1, ::-1
    ],
    "padded": lambda a: np.repeat(np.repeat(a, 3, -1), 2, 1)[:, ::2, :, ::3],
    "batch transposed": lambda a: np.ascontiguousarray(a.swapaxes(0, 1)).swapaxes(0, 1),
    "matrix transposed": lambda a: np.ascontiguousarray(a.swapaxes(2, 3)).swapaxes(
        2, 3
    ),
    "broadcast": lambda a: np.broadcast_to(a[:1, :1], a.shape),
}


def lay(a, layout):
    b = LAYOUTS[layout](a)
    return host_cupy.asarray(b), np.array(b)


def eps(char):
    return np.finfo(char).eps


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("char", DTYPES)
def test_potrf(cusolver, char, uplo, layout):
    for n in (1, 2, 5):
        a = positive((3, 2), n, char)
        b, before = lay(poisoned(a, uplo), layout)
        want = a[:1, :1] if layout == "broadcast" else a
        factor, info = cusolver.potrf(b, uplo)
        assert np.array_equal(b, before, equal_nan=True)
        assert not info.any()
        assert info.dtype == np.int32
        assert info.shape == (3, 2)
        assert factor.flags.c_contiguous
        assert factor.dtype == char
        other = np.triu(factor, 1) if uplo == "L" else np.tril(factor, -1)
        assert not other.any()
        f = factor if uplo == "L" else factor.conj().swapaxes(-1, -2)
        product = f @ f.conj().swapaxes(-1, -2)
        assert abs(product - want).max() <= 64 * n * eps(char) * abs(want).max()


@pytest.mark.parametrize("char", DTYPES)
def test_potrf_one_large_matrix(cusolver, char):
    n = 256
    a = positive((), n, char)
    factor, info = cusolver.potrf(host_cupy.asarray(a), "L")
    assert info.shape == ()
    assert not info
    assert abs(factor @ factor.conj().T - a).max() <= 64 * n * eps(char) * abs(a).max()


@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("char", DTYPES)
def test_potrf_failures_are_numbered_and_stay_alone(cusolver, char, uplo):
    n = 5
    a = positive((7,), n, char)
    good, _ = cusolver.potrf(host_cupy.asarray(a), uplo)
    a[1, 2, 2] = -1
    a[3, (4, 1), (1, 4)] = np.nan
    a[4, 0, 0] = np.inf
    a[5, 1, 1], a[5, 3, 3] = -1, np.nan  # the earlier failure counts
    factor, info = cusolver.potrf(host_cupy.asarray(a), uplo)
    assert info.tolist() == [0, 3, 0, 5, 1, 2, 0]
    assert np.isnan(factor[[1, 3, 4, 5]]).all()
    assert np.array_equal(factor[[0, 2, 6]], good[[0, 2, 6]])


@pytest.mark.parametrize("batch", [1, 3])
def test_a_negative_status_is_a_failure(cusolver, monkeypatch, batch):
    """It says that an argument was wrong; info is never negative, and never dropped."""
    factor = host_cupy.factor
    turns = iter([-4, *[0] * batch])

    def wrong_once(v, fill):
        return next(turns) or factor(v, fill)

    monkeypatch.setattr(host_cupy, "factor", wrong_once)
    a = host_cupy.asarray(positive((batch,), 256, "d"))
    found, info = cusolver.potrf(a, "L")
    assert (info > 0).tolist() == [True, *[False] * (batch - 1)]
    assert np.isnan(found[0]).all()
    assert np.isfinite(found[1:]).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize("char", DTYPES)
def test_syev(cusolver, char, uplo, layout):
    for n in (1, 2, 5, 33):
        a = positive((3, 2), n, char)
        b, before = lay(poisoned(a, uplo), layout)
        want = np.broadcast_to(a[:1, :1], a.shape) if layout == "broadcast" else a
        w, v, info = cusolver.syev(b, uplo, vectors=True)
        assert np.array_equal(b, before, equal_nan=True)
        assert not info.any()
        assert v.flags.c_contiguous
        assert w.dtype == char.lower()
        assert (np.diff(w) >= 0).all()
        residual = want @ v - v * w[..., None, :]
        assert abs(residual).max() <= 64 * n * eps(char) * abs(want).max()
        only, none, _ = cusolver.syev(b, uplo, vectors=False)
        assert none is None
        assert np.allclose(only, w, rtol=1e-4)


def test_syev_routine_by_order(cusolver):
    assert cusolver.syev_routine(32) == "syevjBatched"
    assert cusolver.syev_routine(33) == "XsyevBatched"


@pytest.mark.parametrize("char", "fdFD")
def test_values_are_put_in_order(cusolver, char):
    rng = np.random.default_rng(0)
    w = rng.integers(0, 9, (5, 40)).astype(char.lower())  # many are equal
    w[1, 3] = w[1, 7] = np.nan
    found = host_cupy.asarray(np.full_like(w, -999))
    order = cusolver.arrange(host_cupy.asarray(w), found)
    want = np.argsort(w, axis=-1, kind="stable")
    assert np.array_equal(order, want)
    assert np.array_equal(found, np.take_along_axis(w, want, -1), equal_nan=True)


def test_syev_without_the_batched_routine(cusolver, monkeypatch):
    n = 40
    from batchlas._vendor import xsyevbatched
    from batchlas.exceptions import BatchlasWarning

    monkeypatch.setattr(xsyevbatched, "why_missing", lambda: "no such routine")
    cusolver._warn_missing.cache_clear()
    a = positive((3,), n, "D")
    with pytest.warns(BatchlasWarning, match=r"no such routine.*syevd"):
        w, v, info = cusolver.syev(host_cupy.asarray(a), "L", vectors=True)
    assert not info.any()
    assert np.allclose(a @ v, v * w[..., None, :])
    assert cusolver.syev_routine(n) == "syevd"


@pytest.mark.parametrize("char", DTYPES)
def test_syev_nan_stays_alone(cusolver, char):
    a = positive((4,), 3, char)
    a[1, 2, 0] = np.nan
    a[2, 0, 1] = np.inf  # not read
    w, v, info = cusolver.syev(host_cupy.asarray(a), "L", vectors=True)
    assert info.tolist() == [0, 3, 0, 0]
    assert np.isnan(w[1]).all()
    assert np.isnan(v[1]).all()
    assert np.isfinite(w[[0, 2, 3]]).all()
    assert np.isfinite(v[[0, 2, 3]]).all()


SHAPES = [(1, 1), (3, 3), (5, 2), (2, 5), (40, 3), (3, 40), (33, 33), (34, 33)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("job", ["none", "thin", "all"])
@pytest.mark.parametrize("char", DTYPES)
def test_gesvd(cusolver, char, job, shape):
    (m, n), k = shape, min(shape)
    for layout in LAYOUTS if char == "D" else ["C"]:
        b, before = lay(random((3, 2, m, n), char), layout)
        u, s, vh, info = cusolver.gesvd(b, job)
        assert np.array_equal(b, before)
        assert not info.any()
        assert s.shape == (3, 2, k)
        assert s.dtype == char.lower()
        assert (np.diff(s) <= 0).all()
        if job == "none":
            assert u is None
            assert vh is None
            continue
        full = job == "all"
        assert u.shape == (3, 2, m, m if full else k)
        assert u.flags.c_contiguous
        assert vh.shape == (3, 2, n if full else k, n)
        assert vh.flags.c_contiguous
        product = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :]
        assert abs(product - before).max() <= 64 * max(m, n) * eps(char) * s.max()
        eye = np.eye(u.shape[-1])
        assert abs(u.conj().swapaxes(-1, -2) @ u - eye).max() <= 1e3 * eps(char)


@pytest.mark.parametrize("shape", [(3, 3), (5, 2), (40, 3), (3, 40)])
def test_gesvd_nan_stays_alone(cusolver, shape):
    a = random((4, *shape), "D")
    a[1, 0, 0] = np.inf
    a[2, -1, 0] = np.nan
    u, s, vh, info = cusolver.gesvd(host_cupy.asarray(a), "thin")
    assert info.tolist() == [0, 1, shape[0], 0]
    for x in (u, s, vh):
        assert np.isnan(x[1:3]).all()
        assert np.isfinite(x[[0, 3]]).all()


def test_pieces_cut_every_routine(cusolver, monkeypatch):
    from batchlas._vendor import cusolver_svd

    monkeypatch.setattr(cusolver, "_POTRF_BATCH", 3)
    monkeypatch.setattr(cusolver, "_SYEVJ_BATCH", 3)
    monkeypatch.setattr(cusolver, "_XSYEV_BATCH", 3)
    monkeypatch.setattr(cusolver_svd, "_JACOBI_BATCH", 3)
    monkeypatch.setattr(cusolver_svd, "_LOOP_BATCH", 3)
    a = positive((10,), 3, "D")
    factor, info = cusolver.potrf(host_cupy.asarray(a), "U")
    assert np.allclose(factor.conj().swapaxes(1, 2) @ factor, a)
    assert not info.any()
    w, v, info = cusolver.syev(host_cupy.asarray(a[::-1]), "U", vectors=True)
    assert np.allclose(a[::-1] @ v, v * w[:, None])
    assert not info.any()
    for shape in ((3, 3), (3, 40), (40, 3)):
        b = random((10, *shape), "D")
        b[7, 1, 1] = np.nan
        u, s, vh, info = cusolver.gesvd(host_cupy.asarray(b), "thin")
        good = info == 0
        assert good.sum() == 9
        assert not good[7]
        assert np.allclose(((u * s[:, None]) @ vh)[good], b[good])


def test_a_large_matrix_is_scanned_and_written_in_two_launches(cusolver):
    a = positive((2,), 70, "d")
    a[1, 66, 65] = np.nan
    w, _, info = cusolver.syev(host_cupy.asarray(a), "L", vectors=False)
    assert info.tolist() == [0, 67]
    assert np.allclose(w[0], np.linalg.eigvalsh(a[0]))
    assert np.isnan(w[1]).all()


def test_memory_cuts_the_batch(cusolver):
    from batchlas._vendor import cuda_memory

    assert cuda_memory.most_matrices(100, 1 << 20, 64) == 64
    assert cuda_memory.most_matrices(10_000, 1 << 20, 1 << 20) == 256
    assert cuda_memory.most_matrices(3, 1 << 40, 9) == 1
    cut = list(cuda_memory.pieces(10, 4))
    assert [(p.start, p.stop) for p in cut] == [(0, 4), (4, 8), (8, 10)]
    assert [p.stop - p.start for p in cuda_memory.pieces(65537, 65535)] == [
        32769,
        32768,
    ]
