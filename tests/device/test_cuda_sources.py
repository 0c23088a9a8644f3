"""The CUDA kernels of batchlas._kernels.cuda, run on the host, and as nvcc has them."""

from __future__ import annotations

import shutil
import subprocess
from importlib.resources import files

import numpy as np
import pytest
from checks import (
    assert_all_nan,
    assert_cholesky,
    assert_eigh,
    assert_same_bits,
    assert_svd,
    assert_values,
)
from cuda_host import compiler, launcher
from families import DEFINITE, GENERAL, HERMITIAN, mixed
from host_cupy import asarray

from batchlas._kernels.cuda import plans, reductions

NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
needs_compiler = pytest.mark.skipif(compiler() is None, reason="no C++ compiler")
LOCAL_BYTES = 227 << 10
SCALES = ("overflow", "underflow")
BAD = 2  # the matrix of a stack that is spoiled


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """Return the launching modules on a stand-in for CuPy."""
    with launcher(tmp_path_factory.mktemp("cuda")) as modules:
        yield modules


def stack(cases, n, char, m=None):
    """Return a matrix of every case, also near overflow and underflow."""
    scaled = [c.stack(n, char, m=m, scale=s, batch=1) for c in cases for s in SCALES]
    matrices = np.concatenate([mixed(cases, n, char, m=m), *scaled])
    return matrices[np.isfinite(matrices).all((1, 2))]


def poisoned(matrices, uplo):
    """Return a copy with NaN in the triangle that is not read."""
    n = matrices.shape[-1]
    read = np.tri(n, dtype=bool) if uplo == "L" else np.tri(n, dtype=bool).T
    copy = np.where(read, matrices, np.nan).astype(matrices.dtype)
    if copy.dtype.kind == "c":
        copy.imag[..., range(n), range(n)] = np.nan
    return copy


def assert_others(found, clean):
    """Check that one bad matrix has left all others as they were."""
    keep = np.arange(len(clean)) != BAD
    assert_all_nan(found[BAD])
    assert_same_bits(np.asarray(found)[keep], np.asarray(clean)[keep])


@needs_compiler
@pytest.mark.parametrize("uplo", ["L", "U"])
@pytest.mark.parametrize(
    ("family", "n", "char"),
    [
        *[("tiny", 1, "d"), ("tiny", 5, "f"), ("tiny", 4, "D"), ("rows", 3, "F")],
        *[("rows", 21, "f"), ("rows", 33, "d"), ("cta", 5, "D"), ("cta", 37, "f")],
        *[("blocked", 7, "f"), ("blocked", 40, "D")],
    ],
)
def test_potrf(kernels, family, n, char, uplo):
    launch, _ = kernels
    a = mixed(DEFINITE, n, char)
    clean, info = launch.potrf(family, asarray(poisoned(a, uplo)), uplo)
    assert not info.any()
    assert_cholesky(a, clean, upper=uplo == "U")
    spoiled = a.copy()
    spoiled[BAD] = np.eye(n)
    spoiled[BAD, n - 1, n - 1] = -1
    found, info = launch.potrf(family, asarray(poisoned(spoiled, uplo)), uplo)
    assert info[BAD] == n
    assert np.count_nonzero(info) == 1
    assert_others(found, clean)
    spoiled[BAD, n // 2, n // 2] = np.inf
    _, info = launch.potrf(family, asarray(poisoned(spoiled, uplo)), uplo)
    assert info[BAD] == n // 2 + 1


@needs_compiler
@pytest.mark.parametrize(
    ("family", "n", "char", "uplo"),
    [
        *[("tiny", 1, "f", "L"), ("tiny", 3, "d", "U"), ("tiny", 4, "F", "L")],
        *[("tridiagonal", 2, "F", "U"), ("tridiagonal", 7, "d", "L")],
        ("tridiagonal", 16, "f", "U"),
        pytest.param("tridiagonal", 35, "f", "L", marks=pytest.mark.slow),
    ],
)
def test_syev(kernels, family, n, char, uplo):
    launch, reduced = kernels
    solve = launch.syev_jacobi if family == "tiny" else reduced.syev_tridiagonal
    a = stack(HERMITIAN, n, char)
    w, v, info = solve(asarray(poisoned(a, uplo)), uplo, vectors=True)
    assert not info.any()
    assert_eigh(a, w, v, uplo=uplo)
    only, none, info = solve(asarray(poisoned(a, uplo)), uplo, vectors=False)
    assert none is None
    assert not info.any()
    assert_values(a, only, w)
    place = (BAD, n - 1, 0) if uplo == "L" else (BAD, 0, n - 1)
    a[place] = np.nan
    *found, info = solve(asarray(poisoned(a, uplo)), uplo, vectors=True)
    assert info[BAD] == n
    assert np.count_nonzero(info) == 1
    for one, other in zip(found, (w, v), strict=True):
        assert_others(one, other)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [33, 171, 181, 243, 245])
def test_every_matrix_starts_where_16_bytes_can_be_read(dtype, n):
    """Odd orders that do not fit in shared memory stopped with a misaligned address."""
    shape = n, dtype, "L", LOCAL_BYTES, 64
    found = [
        reductions.syev_tridiagonal(*shape, vectors=True),
        *(
            reductions.gesvd_bidiagonal(*each, dtype, "thin", LOCAL_BYTES, 64)
            for each in ((n, n), (3 * n, n), (n, 3 * n))
        ),
    ]
    size = np.dtype(dtype).itemsize
    starts = [each.reduced * size % 16 for each in found if each is not None]
    assert len(starts) > 1
    assert not any(starts)


@needs_compiler
@pytest.mark.parametrize(
    ("words", "segments", "n", "char"),
    [(16, 2, 9, "d"), (8, 4, 17, "f"), (16, 2, 9, "F"), (0, None, 9, "f")],
)
def test_vectors_turn_in_parts(kernels, monkeypatch, words, segments, n, char):
    """Lines of several threads, and those that lie in shared memory."""
    _, reduced = kernels
    monkeypatch.setattr(reductions, "_LINE_WORDS", words)
    reductions.syev_tridiagonal.cache_clear()
    try:
        a = stack(HERMITIAN, n, char)
        w, v, info = reduced.syev_tridiagonal(asarray(a), "L", vectors=True)
        name = np.dtype(char).name
        plan = reductions.syev_tridiagonal(n, name, "L", LOCAL_BYTES, 64, vectors=True)
    finally:
        reductions.syev_tridiagonal.cache_clear()
    layout = [each for each in plan.rotate[0].defines if "SEGMENTS" in each]
    assert layout == ([] if segments is None else [f"SEGMENTS={segments}"])
    assert not info.any()
    assert_eigh(a, w, v)


@needs_compiler
@pytest.mark.parametrize(
    ("family", "shape", "char", "job"),
    [
        *[("tiny", (1, 1), "f", "all"), ("tiny", (3, 3), "D", "all")],
        *[("tiny", (5, 2), "f", "all"), ("tiny", (2, 4), "F", "all")],
        *[("golub", (2, 3), "d", "all"), ("golub", (7, 7), "f", "all")],
        *[("golub", (9, 4), "D", "all"), ("golub", (3, 8), "F", "thin")],
        pytest.param("golub", (20, 33), "f", "thin", marks=pytest.mark.slow),
    ],
)
def test_gesvd(kernels, family, shape, char, job):
    launch, reduced = kernels
    solve = launch.gesvd_jacobi if family == "tiny" else reduced.gesvd_bidiagonal
    m, n = shape
    a = stack(GENERAL, n, char, m)
    u, s, vh, info = solve(asarray(a), job)
    assert not info.any()
    assert_svd(a, u, s, vh)
    none, only, _, info = solve(asarray(a), "none")
    assert none is None
    assert not info.any()
    assert_values(a, only, s)
    a[BAD, m - 1, n - 1] = np.inf
    *found, info = solve(asarray(a), job)
    assert info[BAD] == max(m, n)
    assert np.count_nonzero(info) == 1
    for one, other in zip(found, (u, s, vh), strict=True):
        assert_others(one, other)


def every_kernel():
    """Yield a plan of every kernel, in dtypes that take turns."""
    yield plans.potrf_tiny(7, "float32", "L")
    yield plans.potrf_rows(20, "complex64", "U")
    yield plans.potrf_cta(70, "float64", "L", LOCAL_BYTES)
    yield plans.potrf_blocked(300, "complex128", "U").panel
    yield plans.syev_jacobi(5, "complex64", "U", vectors=True)
    yield plans.gesvd_jacobi(5, 3, "float64", "all")
    for n, dtype in ((9, "float64"), (70, "float32"), (300, "complex128")):
        shape = (n, dtype, "L", LOCAL_BYTES, 1 << 16)
        plan = reductions.syev_tridiagonal(*shape, vectors=True)
        yield from (plan.reduce, *plan.accumulate, plan.values, *plan.rotate)
    plan = reductions.gesvd_bidiagonal(12, 30, "complex64", "all", LOCAL_BYTES, 1 << 12)
    yield from (plan.reduce, *plan.accumulate, plan.values, *plan.rotate)


@needs_nvcc
@pytest.mark.parametrize(
    "plan", list(every_kernel()), ids=lambda p: f"{p.kernel}-{p.threads}"
)
def test_nvcc_takes_every_kernel(plan, tmp_path):
    folder = files("batchlas._kernels.cuda")
    names = ("element.cuh", *plan.sources)
    source = tmp_path / "kernel.cu"
    source.write_text("".join(folder.joinpath(n).read_text("utf-8") for n in names))
    defines = [f"-D{each}" for each in plan.defines]
    command = [NVCC, "-std=c++17", "-arch=sm_90", "-cubin", "-Werror", "all-warnings"]
    command += [*defines, "-o", str(tmp_path / "kernel.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
