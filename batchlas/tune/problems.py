"""What is timed: an op's input for a table key, the call, and the check of its result.

Every matrix of a stack is checked before a candidate is timed. Arrays are NumPy's or
CuPy's: NumPy's functions take both. The gates are multiples of n eps relative to the
matrix's 1-norm, looser than the tests' by the square root of two or so, since a tuner
only has to tell a right kernel from a wrong one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from batchlas import linalg
from batchlas._ops.gesvd import GesvdCall
from batchlas._ops.potrf import PotrfCall
from batchlas._ops.syev import SyevCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_GATE = 300.0
"""Largest residual in units of n eps |a|: rotations may lose 256 of them."""


class Problem(Protocol):
    """One op as the tuner sees it."""

    call: Callable[..., Any]
    """The type of the op's table keys."""
    options: tuple[str, ...]
    """Values of the op's exact key (empty: it has none that matters)."""

    def make(self, call: Any, rng: np.random.Generator) -> NDArray[Any]:
        """Return a random input for a table key, where the generator is."""

    def run(self, call: Any, a: Any) -> tuple[Any, ...]:
        """Call the public function; return its results."""

    def error(self, call: Any, a: NDArray[Any], results: list[Any]) -> float:
        """Return the worst residual of the stack in units of n eps |a|."""


def _random(shape: tuple[int, ...], dtype: str, rng: np.random.Generator) -> Any:
    real = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        return (real + 1j * rng.standard_normal(shape)).astype(dtype)
    return real.astype(dtype)


def _transposed(a: Any) -> Any:
    return a.swapaxes(-1, -2).conj()


def _worst(difference: Any, a: Any, n: int) -> float:
    """Return the largest 1-norm of a difference, in units of n eps |a|; NaN stays."""
    size = np.abs(difference).sum(-2).max(-1)
    scale = np.abs(a).sum(-2).max(-1) * n * np.finfo(a.dtype).eps
    return float(np.max(size / scale))


class Potrf:
    """Cholesky of positive definite matrices."""

    call: Callable[..., Any] = PotrfCall
    options: tuple[str, ...] = ("L",)

    def make(self, call: Any, rng: np.random.Generator) -> NDArray[Any]:
        """Return ``b b^H + n``, well conditioned at every order."""
        b = _random((call.batch, call.n, call.n), call.dtype, rng)
        a = b @ _transposed(b)
        a[..., np.arange(call.n), np.arange(call.n)] += call.n
        return a  # type: ignore[no-any-return]

    def run(self, call: Any, a: Any) -> tuple[Any, ...]:
        """Factor the stack."""
        return (linalg.cholesky(a, upper=call.uplo == "U"),)

    def error(self, call: Any, a: NDArray[Any], results: list[Any]) -> float:
        """Return the reconstruction error."""
        (factor,) = results
        lower = factor if call.uplo == "L" else _transposed(factor)
        return _worst(lower @ _transposed(lower) - a, a, call.n)


class Syev:
    """Eigenvalues and vectors of Hermitian matrices."""

    call: Callable[..., Any] = SyevCall
    options: tuple[str, ...] = ("V", "N")

    def make(self, call: Any, rng: np.random.Generator) -> NDArray[Any]:
        """Return Hermitian matrices with random entries."""
        b = _random((call.batch, call.n, call.n), call.dtype, rng)
        return b + _transposed(b)  # type: ignore[no-any-return]

    def run(self, call: Any, a: Any) -> tuple[Any, ...]:
        """Solve the eigenproblem."""
        return tuple(linalg.eigh(a)) if call.jobz == "V" else (linalg.eigvalsh(a),)

    def error(self, call: Any, a: NDArray[Any], results: list[Any]) -> float:
        """Return the worse of residual and orthogonality, or the trace's error."""
        w = results[0]
        if call.jobz == "N":
            trace = np.trace(a, axis1=-2, axis2=-1).real - w.sum(-1)
            return _worst(trace[..., None, None], a, call.n)
        v = results[1]
        residual = _worst(a @ v - v * w[..., None, :], a, call.n)
        eye = np.zeros_like(a[0])
        eye[np.arange(call.n), np.arange(call.n)] = 1
        return max(residual, _worst(_transposed(v) @ v - eye, eye, call.n))


class Gesvd:
    """Singular values and vectors."""

    call: Callable[..., Any] = GesvdCall
    options: tuple[str, ...] = ("all", "thin", "none")

    def make(self, call: Any, rng: np.random.Generator) -> NDArray[Any]:
        """Return matrices with random entries."""
        return _random(  # type: ignore[no-any-return]
            (call.batch, call.m, call.n), call.dtype, rng
        )

    def run(self, call: Any, a: Any) -> tuple[Any, ...]:
        """Decompose the stack."""
        if call.vec == "none":
            return (linalg.svdvals(a),)
        return tuple(linalg.svd(a, full_matrices=call.vec == "all"))

    def error(self, call: Any, a: NDArray[Any], results: list[Any]) -> float:
        """Return the reconstruction error, or the Frobenius norm's error."""
        k = max(call.m, call.n)
        if call.vec == "none":
            squares = (np.abs(a) ** 2).sum((-2, -1)) - (results[0] ** 2).sum(-1)
            return _worst(squares[..., None, None], a * np.abs(a), k * k)
        u, s, vh = results
        least = min(call.m, call.n)
        product = (u[..., :least] * s[..., None, :]) @ vh[..., :least, :]
        return _worst(product - a, a, k)


PROBLEMS: dict[str, Problem] = {"potrf": Potrf(), "syev": Syev(), "gesvd": Gesvd()}


def is_right(problem: Problem, call: Any, a: Any, results: list[Any]) -> bool:
    """Whether every matrix of a result passes the gate; NaN does not."""
    return problem.error(call, a, results) <= _GATE
