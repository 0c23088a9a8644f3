"""The matrix families that every accuracy test runs over, as values.

They are those of LAPACK's own drivers for eigenvalue and singular value tests, and a
few that batched kernels stumble over: repeated values, deficient rank, grading. A case
builds one matrix of a given order in double precision; `stack` draws several of them
and rounds to the dtype that is asked for.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = ("float32", "float64", "complex64", "complex128")
BATCH = 5


@dataclass(frozen=True, slots=True)
class Draw:
    """What a family is built from: an order, a dtype to be rounded to, and chance."""

    m: int
    n: int
    dtype: np.dtype
    rng: np.random.Generator

    @property
    def k(self):
        return min(self.m, self.n)

    @property
    def is_single(self):
        return self.dtype.char in "fF"

    @property
    def eps(self):
        return float(np.finfo(self.dtype).eps)

    def normal(self, m, n):
        real = self.rng.standard_normal((m, n))
        if self.dtype.kind == "f":
            return real
        return real + 1j * self.rng.standard_normal((m, n))

    def unitary(self, n):
        return np.linalg.qr(self.normal(n, n))[0]

    def signs(self, n):
        return self.rng.choice([-1.0, 1.0], n)


@dataclass(frozen=True, slots=True)
class Case:
    """A family of matrices: its name, which is its test id, and how to build one."""

    name: str
    build: Callable[[Draw], np.ndarray]

    def __str__(self):
        return self.name

    def stack(self, n, dtype, *, m=None, scale="unit", batch=BATCH):
        """Return ``batch`` matrices of m x n (or n x n), C-contiguous."""
        dtype = np.dtype(dtype)
        seed = zlib.crc32(f"{self.name} {n} {m} {dtype}".encode())
        draw = Draw(m or n, n, dtype, np.random.default_rng(seed))
        matrices = np.stack([self.build(draw) for _ in range(batch)])
        largest = np.abs(matrices).max() or 1.0
        return (matrices * (scale_of(scale, dtype) / largest)).astype(dtype)


def scale_of(scale, dtype):
    """Return the largest entry of a stack scaled near overflow or underflow.

    What is added to the limits leaves room for sums over a row, and for a device that
    flushes subnormal numbers to zero.
    """
    limits = np.finfo(dtype)
    scales = {
        "unit": 1.0,
        "overflow": float(limits.max) * 2.0**-12,
        "underflow": float(limits.tiny) * 2.0**32,
    }
    return scales[scale]


# Spectra: descending values in [0, 1] for a draw.


def evenly_spaced(d):
    return np.linspace(1, 1 / d.k, d.k)


def geometric(d):
    return np.geomspace(1, 1e-3 if d.is_single else 1e-7, d.k)


def clustered(d):
    width = 4 * d.eps * np.arange(d.k)
    return np.where(np.arange(d.k) < (d.k + 1) // 2, 1 - width, 1e-2 - 1e-2 * width)


def repeated(d):
    return np.where(np.arange(d.k) < (d.k + 1) // 2, 1.0, 0.5)


def rank_deficient(d):
    return np.where(np.arange(d.k) < (d.k + 1) // 2, evenly_spaced(d), 0.0)


def nearly_deficient(d):
    return np.where(np.arange(d.k) < (d.k + 1) // 2, evenly_spaced(d), d.eps / 2)


DEFINITE_SPECTRA = (evenly_spaced, geometric, clustered, repeated)
SPECTRA = (*DEFINITE_SPECTRA, rank_deficient, nearly_deficient)


def _general(spectrum):
    def build(d):
        u, v = d.unitary(d.m)[:, : d.k], d.unitary(d.n)[: d.k]
        return u * spectrum(d) @ v

    return Case(spectrum.__name__, build)


def _hermitian(spectrum):
    def build(d):
        q = d.unitary(d.n)
        return q * (spectrum(d) * d.signs(d.n)) @ q.conj().T

    return Case(spectrum.__name__, build)


def _definite(spectrum):
    def build(d):
        q = d.unitary(d.n)
        return q * spectrum(d) @ q.conj().T

    return Case(spectrum.__name__, build)


# Structures.


def _zero(d):
    return np.zeros((d.m, d.n))


def _identity(d):
    return np.eye(d.m, d.n)


def _diagonal(d):
    matrix = np.zeros((d.m, d.n))
    np.fill_diagonal(matrix, d.rng.permutation(np.arange(1.0, d.k + 1)) * d.signs(d.k))
    return matrix


def _random(d):
    return d.normal(d.m, d.n)


def _band(matrix, below, above):
    return np.triu(np.tril(matrix, above), -below)


def _banded(d):
    return _band(d.normal(d.m, d.n), 2, 2)


def _upper_bidiagonal(d):
    return _band(d.normal(d.m, d.n), 0, 1)


def _lower_bidiagonal(d):
    return _band(d.normal(d.m, d.n), 1, 0)


def _steps(d, count):
    """Return row factors whose square spans condition 1e6 or 1e14."""
    return np.geomspace(1, 1e-3 if d.is_single else 1e-7, count)


def _graded(d):
    return _steps(d, d.m)[:, None] * d.normal(d.m, d.n) * _steps(d, d.n)


def _rows_scaled(d):
    return np.geomspace(1e-10, 1e10, d.m)[:, None] * d.normal(d.m, d.n)


def _symmetric(build):
    def symmetric(d):
        matrix = build(d)
        return matrix + matrix.conj().T

    return Case(build.__name__.strip("_"), symmetric)


def _dominant(matrix):
    """Return a Hermitian matrix made definite by its diagonal."""
    matrix = matrix + matrix.conj().T
    bound = np.abs(matrix).sum(axis=1)
    return matrix + np.diag(2 * bound)


def _between(factors, build):
    """Return D B D: a Hermitian matrix whose rows and columns differ in size."""

    def scaled(d):
        f = factors(d)
        return f[:, None] * build(d) * f

    return scaled


def _grading(d):
    return _steps(d, d.n)


def _row_sizes(d):
    return np.geomspace(1e-5, 1e5, d.n)


def _hermitian_random(d):
    matrix = d.normal(d.n, d.n)
    return matrix + matrix.conj().T


def _definite_random(d):
    matrix = d.normal(d.n, d.n)
    return matrix @ matrix.conj().T + 2 * d.n * np.eye(d.n)


GENERAL = (
    Case("zero", _zero),
    Case("identity", _identity),
    Case("diagonal", _diagonal),
    *map(_general, SPECTRA),
    Case("random", _random),
    Case("banded", _banded),
    Case("upper_bidiagonal", _upper_bidiagonal),
    Case("lower_bidiagonal", _lower_bidiagonal),
    Case("graded", _graded),
    Case("rows_scaled", _rows_scaled),
)
HERMITIAN = (
    Case("zero", _zero),
    Case("identity", _identity),
    Case("diagonal", _diagonal),
    *map(_hermitian, SPECTRA),
    Case("random", _hermitian_random),
    _symmetric(_banded),
    Case("tridiagonal", lambda d: _symmetric(_upper_bidiagonal).build(d)),
    Case("graded", _between(_grading, _hermitian_random)),
    Case("rows_scaled", _between(_row_sizes, _hermitian_random)),
)
DEFINITE = (
    Case("identity", _identity),
    Case("diagonal", lambda d: np.abs(_diagonal(d))),
    *map(_definite, DEFINITE_SPECTRA),
    Case("random", _definite_random),
    Case("banded", lambda d: _dominant(_banded(d))),
    Case("tridiagonal", lambda d: _dominant(_upper_bidiagonal(d))),
    Case("graded", _between(_grading, _definite_random)),
    Case("rows_scaled", _between(_row_sizes, _definite_random)),
)


def mixed(cases, n, dtype, *, m=None):
    """Return one stack that holds a matrix of every case."""
    return np.concatenate([case.stack(n, dtype, m=m, batch=1) for case in cases])


def definite(*shape, dtype="float64", seed=0):
    """Return well-conditioned Hermitian positive definite matrices of a shape."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    matrices = rng.standard_normal(shape)
    if dtype.kind == "c":
        matrices = matrices + 1j * rng.standard_normal(shape)
    n = shape[-1]
    stack = matrices @ matrices.conj().swapaxes(-1, -2) + n * np.eye(n)
    return stack.astype(dtype)


def general(*shape, dtype="float64", seed=0):
    """Return random matrices of a shape."""
    dtype = np.dtype(dtype)
    rng = np.random.default_rng(seed)
    stack = rng.standard_normal(shape)
    if dtype.kind == "c":
        stack = stack + 1j * rng.standard_normal(shape)
    return stack.astype(dtype)
