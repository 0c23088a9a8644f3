"""Stacks of matrices and the accuracy gates that results of them must pass.

Gates are relative to each matrix's 1-norm, in units of the dtype's rounding: 64 n for
residuals and orthogonality, 256 n for orthogonality from rotations. Every matrix of a
stack is checked, and NaN never passes.
"""

from __future__ import annotations

import numpy as np

DTYPES = "fdFD"


def gpu_missing():
    """Return why CuPy cannot be used, or an empty string."""
    try:
        import cupy
    except ImportError as error:
        return f"no CuPy: {error}"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy finds no GPU: {error}"
    return "" if count else "CuPy finds no GPU"


def random(shape, char, seed=1):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(shape)
    if char in "FD":
        a = a + 1j * rng.standard_normal(shape)
    return a.astype(char)


def positive(batch, n, char):
    a = random((*batch, n, n), char)
    return (a @ a.conj().swapaxes(-1, -2) + n * np.eye(n)).astype(char)


def symmetric(batch, n, char):
    a = random((*batch, n, n), char)
    return (a + a.conj().swapaxes(-1, -2)) / a.dtype.type(2)


def poisoned(a, uplo, poison=np.nan):
    """Return `a` with poison wherever it must not be read."""
    n = a.shape[-1]
    read = np.tri(n, dtype=bool) if uplo == "L" else np.tri(n, dtype=bool).T
    b = np.where(read, a, a.dtype.type(poison))
    if b.dtype.kind == "c":
        b.imag[..., range(n), range(n)] = poison
    return b


def unit(char):
    return float(np.finfo(char).eps) / 2


def worst(errors, scale):
    """Return the largest error of any matrix relative to it; NaN if there is one."""
    per_matrix = np.abs(errors).max((-1, -2)) / scale
    return float(np.max(per_matrix))  # np.max keeps NaN


def norm1(a):
    return np.maximum(np.abs(a).sum(-2).max(-1), np.finfo("d").tiny)


def wide(x):
    """Return a host copy in double precision."""
    x = x.get() if hasattr(x, "get") else x
    return x.astype(np.result_type(x.dtype, "d"))


def check_potrf(a, factor, uplo):
    f, n, char = wide(factor), a.shape[-1], factor.dtype.char
    other = np.triu(f, 1) if uplo == "L" else np.tril(f, -1)
    assert not other.any()
    lower = f if uplo == "L" else f.conj().swapaxes(-1, -2)
    error = lower @ lower.conj().swapaxes(-1, -2) - a
    assert worst(error, norm1(a)) <= 64 * n * unit(char)


def check_syev(a, w, v):
    n, char = a.shape[-1], v.dtype.char
    w, v = wide(w), wide(v)
    assert (np.diff(w) >= 0).all()
    assert worst(a @ v - v * w[..., None, :], norm1(a)) <= 64 * n * unit(char)
    gram = v.conj().swapaxes(-1, -2) @ v - np.eye(n)
    assert worst(gram, 1.0) <= 64 * n * unit(char)


def check_gesvd(a, u, s, vh):
    k, n, char = min(a.shape[-2:]), max(a.shape[-2:]), u.dtype.char
    u, s, vh = wide(u), wide(s), wide(vh)
    assert (np.diff(s) <= 0).all()
    assert (s >= 0).all()
    error = (u[..., :k] * s[..., None, :]) @ vh[..., :k, :] - a
    assert worst(error, norm1(a)) <= 64 * n * unit(char)
    for q in (u, vh.conj().swapaxes(-1, -2)):
        gram = q.conj().swapaxes(-1, -2) @ q - np.eye(q.shape[-1])
        assert worst(gram, 1.0) <= 256 * n * unit(char)
