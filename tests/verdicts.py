"""What a call on any stack may come to: the results or the error that are right.

`judge` compares one outcome of batchlas with what the definition asks and with NumPy's
answer, matrix by matrix. Where NumPy follows no one rule (NaN, infinity), ours holds:
such a matrix fails, alone and under every policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from checks import (
    assert_all_nan,
    assert_cholesky,
    assert_eigh,
    assert_real_values,
    assert_svd,
    assert_values,
)

if TYPE_CHECKING:
    from calls import Call

ORTHOGONALITY = 256  # whichever family runs, one by rotations too
# Relative to norm and n * eps: closer to singular than this, either verdict is right.
MARGIN = 64


@dataclass(frozen=True, slots=True)
class Verdict:
    """Which matrices of a stack must fail, and which may."""

    must: np.ndarray
    may: np.ndarray


def computed(a):
    """Return the array in the type that it is computed in."""
    a = np.asarray(a)
    if a.dtype.kind in "biu":
        return a.astype(np.float64)
    return a.astype(a.dtype.newbyteorder("="))


def part_of(call: Call):
    """Return what a call reads of a matrix: L, U, or A for all."""
    if call.name.startswith("cholesky"):
        return "U" if call.options.get("upper") else "L"
    if call.name.startswith("eig"):
        return call.options.get("UPLO", "L").upper()
    return "L" if call.options.get("hermitian") else "A"


def read_part(a, part):
    """Return the matrices with zeros where nothing is read."""
    if part == "A":
        return a
    return np.tril(a) if part == "L" else np.triu(a)


def hermitian(a, part):
    """Return the Hermitian matrices that a triangle stands for."""
    triangle = read_part(a, part)
    diagonal = np.diagonal(triangle, axis1=-2, axis2=-1).real
    strict = triangle * (1 - np.eye(a.shape[-1], dtype=a.real.dtype))
    return (
        strict
        + strict.conj().swapaxes(-1, -2)
        + diagonal[..., None] * np.eye(a.shape[-1])
    )


def verdict_of(call: Call, a):
    """Return which matrices of a computed stack must fail and which may."""
    part = part_of(call)
    finite = np.isfinite(read_part(a, part)).all(axis=(-2, -1))
    if not call.name.startswith("cholesky"):
        return Verdict(~finite, ~finite | is_extreme(a))
    n, eps = a.shape[-1], np.finfo(a.dtype).eps
    least = np.full(a.shape[:-2], -1.0)
    norms = np.zeros(a.shape[:-2])
    for index in np.ndindex(a.shape[:-2]):
        if finite[index]:
            matrix = _scaled(hermitian(a[index].astype(_wide(a)), part))
            least[index] = np.linalg.eigvalsh(matrix)[0]
            norms[index] = np.abs(matrix).sum(axis=-1).max()
    margin = MARGIN * n * eps * norms
    near = (np.abs(least) <= margin) & finite
    return Verdict(
        ~finite | (least < -margin), ~finite | near | (least < 0) | is_extreme(a)
    )


def is_extreme(a):
    """Return which matrices come so near to the limits that rounding is absolute.

    Their results may overflow, or consist of subnormal numbers. What is asked of them
    is that they come back and leave the others alone.
    """
    limits = np.finfo(a.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        sizes = np.where(np.isfinite(a), np.abs(a), 0)
        largest = sizes.max(axis=(-2, -1), initial=0).astype(np.float64)
    small = (largest > 0) & (largest < float(limits.tiny) * 2.0**30)
    return small | (largest > float(limits.max) * 2.0**-11)


def _wide(a):
    return np.complex128 if a.dtype.kind == "c" else np.float64


def _scaled(matrix):
    exponent = int(np.frexp(np.abs(matrix).max(initial=0))[1])
    half = exponent // 2  # in two steps, each of them in range
    return matrix * 2.0**-half * 2.0 ** -(exponent - half)


def judge_results(call: Call, a, found, failed):
    """Check the results of every matrix: by definition, or NaN where it failed.

    Parameters
    ----------
    call : Call
    a : ndarray
        The argument in the type that it is computed in.
    found : tuple of ndarray
        The results.
    failed : ndarray of bool
        Which matrices were reported.
    """
    verdict = verdict_of(call, a)
    assert (failed | ~verdict.must).all(), "a matrix that must fail did not"
    assert (verdict.may | ~failed).all(), "a matrix that must not fail did"
    for result in found:
        if failed.any() and result[failed].size:
            assert_all_nan(result[failed])
    right = ~failed & ~is_extreme(a)
    if right.any():
        _check(call, a[right], tuple(result[right] for result in found))


def _check(call, a, found):
    with np.errstate(all="ignore"):
        if call.name.startswith("cholesky"):
            assert_cholesky(_cut(a, call), *found, upper=part_of(call) == "U")
        elif call.name.startswith("eig"):
            _check_eigen(call, a, found)
        elif len(found) == 3:
            matrix = hermitian(a, "L") if call.options.get("hermitian") else a
            assert_svd(matrix.astype(a.dtype), *found, orthogonality=ORTHOGONALITY)
        else:
            matrix = hermitian(a, "L") if call.options.get("hermitian") else a
            _check_values(matrix.astype(a.dtype), found[0], _svdvals)


def _cut(a, call):
    """Return the stack without what is not read: it may be NaN."""
    return read_part(a, part_of(call))


def _check_eigen(call, a, found):
    part = part_of(call)
    if len(found) == 2:
        cut = _cut(a, call)
        assert_eigh(cut, *found, uplo=part, orthogonality=ORTHOGONALITY)
    else:
        _check_values(hermitian(a, part).astype(a.dtype), found[0], np.linalg.eigvalsh)


def _svdvals(a):
    return np.linalg.svd(a, compute_uv=False)


def _check_values(a, values, routine):
    steps = np.diff(values.astype(np.float64), axis=-1)
    in_order = steps >= 0 if routine is not _svdvals else steps <= 0
    assert_real_values(a, values, in_order)
    assert_values(a, values, routine(a.astype(_wide(a))))
