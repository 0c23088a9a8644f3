"""Does a result satisfy the definition of what was computed, for every matrix?

Nothing here calls batchlas: the products are NumPy's. Each measure is a multiple of
n eps in the 1-norm, the unit in which LAPACK states its own error bounds, so that one
limit serves every order and dtype. All comparisons are written so that NaN fails.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# LAPACK's own test programs call a result wrong from 30 n eps on.
LIMIT = 30.0


class Report(NamedTuple):
    """What the check of one result found."""

    residual: float
    """The largest residual of a matrix, in multiples of n eps times its norm."""
    orthogonality: float | None
    """The largest deviation from orthonormal vectors, in multiples of n eps."""
    faults: tuple[str, ...]
    """Every violation in words; empty when all matrices are right."""


class _Measure(NamedTuple):
    """One quantity of every matrix that must stay below the limit."""

    name: str
    multiples: NDArray[Any]


# Measures, the residual first, and what else must hold for the whole stack.
_Found = tuple[list[_Measure], list[tuple[str, bool]]]


def check(function: str, a: NDArray[Any], result: Any) -> Report:
    """Check one function's result for a whole stack of square matrices.

    Parameters
    ----------
    function : {"cholesky", "eigh", "svd"}
        What was computed.
    a : (B, N, N) array
        The real symmetric matrices.
    result : array or tuple of array
        What the function returned, as NumPy arrays.
    """
    outputs = (result,) if isinstance(result, np.ndarray) else tuple(result)
    shapes = _SHAPES[function](a.shape)
    found = [(output.shape, output.dtype) for output in outputs]
    if found != [(shape, a.dtype) for shape in shapes]:
        fault = f"shapes and dtypes are {found}, expected {shapes} of {a.dtype}"
        return Report(np.nan, None, (fault,))
    measures, structure = _DEFINITIONS[function](a, *outputs)
    faults = [fault for m in measures if (fault := _beyond_limit(m)) is not None]
    faults += [f"not every result is {text}" for text, holds in structure if not holds]
    residual, *orthogonality = (float(np.max(m.multiples)) for m in measures)
    worst = float(np.max(orthogonality)) if orthogonality else None
    return Report(residual, worst, tuple(faults))


def _cholesky(a: Any, factor: Any) -> _Found:
    diagonal = np.diagonal(factor, axis1=-2, axis2=-1)
    structure = [
        ("zero above its diagonal", not np.triu(factor, 1).any()),
        ("positive on its diagonal", bool((diagonal > 0).all())),
    ]
    return [_residual(a, factor @ factor.swapaxes(-1, -2))], structure


def _eigh(a: Any, w: Any, v: Any) -> _Found:
    measures = [
        _relative("residual", a @ v - v * w[..., None, :], a),
        _orthogonality("eigenvectors", v),
    ]
    return measures, [("ascending", bool((np.diff(w) >= 0).all()))]


def _svd(a: Any, u: Any, s: Any, vh: Any) -> _Found:
    measures = [
        _residual(a, (u * s[..., None, :]) @ vh),
        _orthogonality("left vectors", u),
        _orthogonality("right vectors", vh.swapaxes(-1, -2)),
    ]
    structure = [
        ("descending", bool((np.diff(s) <= 0).all())),
        ("non-negative", bool((s >= 0).all())),
    ]
    return measures, structure


_DEFINITIONS: dict[str, Callable[..., _Found]] = {
    "cholesky": _cholesky,
    "eigh": _eigh,
    "svd": _svd,
}

# Shapes of the outputs of each function for a stack of shape s.
_SHAPES: dict[str, Callable[..., list[tuple[int, ...]]]] = {
    "cholesky": lambda s: [s],
    "eigh": lambda s: [s[:-1], s],
    "svd": lambda s: [s, s[:-1], s],
}


def _norms(a: Any) -> Any:
    """Return the 1-norm of every matrix: its largest column sum."""
    return np.abs(a).sum(axis=-2).max(axis=-1)


def _relative(name: str, difference: Any, a: Any) -> _Measure:
    unit = a.shape[-1] * np.finfo(a.dtype).eps * _norms(a)
    return _Measure(name, _norms(difference) / unit)


def _residual(a: Any, product: Any) -> _Measure:
    return _relative("residual", product - a, a)


def _orthogonality(name: str, v: Any) -> _Measure:
    """Measure how far the columns are from orthonormal; the identity has norm 1."""
    identity = np.eye(v.shape[-1], dtype=v.dtype)
    unit = v.shape[-1] * np.finfo(v.dtype).eps
    gram = v.swapaxes(-1, -2) @ v
    return _Measure(f"orthogonality of {name}", _norms(gram - identity) / unit)


def _beyond_limit(measure: _Measure) -> str | None:
    """Say how many matrices exceed the limit, and which is the worst; None if none."""
    bad = ~(measure.multiples <= LIMIT)
    if not bad.any():
        return None
    worst = int(np.argmax(measure.multiples))  # the first NaN, where there is one
    return (
        f"{measure.name} of {np.count_nonzero(bad):,} of {bad.size:,} matrices is "
        f"beyond {LIMIT:g} n eps; matrix {worst} has {measure.multiples[worst]:.3g}"
    )
