"""Every candidate of every op as a value, and how tests ask for it.

Nothing here names a family: what an op's candidate list gains is tested from then on.
An op itself needs an entry in `PROBLEMS`, which a test demands.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pytest
from calls import CHOLESKY, EIGEN, GENERAL_SVD
from checks import assert_cholesky, assert_eigh, assert_svd, assert_values
from families import DEFINITE, DTYPES, GENERAL, HERMITIAN, definite, general, mixed
from libraries import CUPY, DPNP, NUMPY, is_present

from batchlas._dispatch import backend_of
from batchlas._explain import _QUESTIONS
from batchlas._ops import SPECS
from batchlas._select import StrictPin

if TYPE_CHECKING:
    from collections.abc import Callable

    from calls import Call
    from families import Case
    from libraries import Library

    from batchlas._select import Family, OpSpec

# Orders beyond this are not looked at: no family with a limit of its own reaches it.
LARGEST_ORDER = 640
# Where no limit is found: LAPACK's and the vendors' own cliffs.
USUAL_ORDERS = (1, 2, 32, 33)


def _check_cholesky(call, a, found, _orthogonality):
    assert_cholesky(a, *found, upper=call.options.get("upper", False))


def _check_eigen(call, a, found, orthogonality):
    uplo = call.options.get("UPLO", "L")
    if len(found) == 2:
        assert_eigh(a, *found, uplo=uplo, orthogonality=orthogonality)
    else:
        wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
        assert_values(a, *found, np.linalg.eigvalsh(wide, UPLO=uplo))


def _check_svd(_call, a, found, orthogonality):
    if len(found) == 3:
        assert_svd(a, *found, orthogonality=orthogonality)
    else:
        wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
        assert_values(a, *found, np.linalg.svd(wide, compute_uv=False))


@dataclass(frozen=True, slots=True)
class Problem:
    """What an op is asked: public calls, shapes for an order, matrices, and a check."""

    calls: tuple[Call, ...]
    shapes: tuple[Callable[[int], tuple[int, int]], ...]
    cases: tuple[Case, ...]
    simple: Callable[..., np.ndarray]
    check: Callable[..., None]


def _square(n):
    return n, n


def _tall(n):
    return 2 * n + 1, n


def _wide(n):
    return n, 2 * n + 1


PROBLEMS = {
    "potrf": Problem(CHOLESKY, (_square,), DEFINITE, definite, _check_cholesky),
    "syev": Problem(EIGEN, (_square,), HERMITIAN, definite, _check_eigen),
    "gesvd": Problem(
        GENERAL_SVD, (_square, _tall, _wide), GENERAL, general, _check_svd
    ),
}


@dataclass(frozen=True, slots=True)
class Candidate:
    """A choice of an op for one dtype on one kind of array; ``str`` is its test id."""

    spec: OpSpec
    library: Library
    dtype: str
    choice: Family

    def __str__(self):
        return f"{self.spec.op}-{self.library}-{self.dtype}-{self.choice}"

    @property
    def problem(self):
        return PROBLEMS[self.spec.op]

    @property
    def calls(self):
        return self.problem.calls

    @property
    def orthogonality(self):
        """The gate: families of our own may work by rotations."""
        return 64 if self.choice.uses_library else 256

    def pinned(self):
        return StrictPin(self.spec.op, str(self.choice))

    def run(self, call, a):
        """Return the results of a pinned call on a host array, on the host."""
        with self.pinned():
            return call.on_host(self.library.asarray(a))

    def check(self, call, a, found):
        self.problem.check(call, a, found, self.orthogonality)

    def stack(self, shape, batch=None):
        """Return matrices that every call of the op can take.

        One of every case, or `batch` well-conditioned ones.
        """
        m, n = shape
        if batch is None:
            return mixed(self.problem.cases, n, self.dtype, m=m)
        return self.problem.simple(batch, m, n, dtype=self.dtype, seed=m)

    def question(self, call, shape, batch=8):
        """Return the call's table key and the device, without any memory."""
        backend, device = _home(self.library)
        stand_in = np.broadcast_to(np.ones((), self.dtype), (batch, *shape))
        _, key = _QUESTIONS[call.name](backend, stand_in, **call.options)
        return key, device

    def can_run(self, call, shape, batch=8):
        return self.spec.can_run(self.choice, *self.question(call, shape, batch))

    def edges(self, call, shape_of):
        """Return the orders n such that one of n and n + 1 can run and one cannot."""
        orders = range(1, LARGEST_ORDER + 1)
        verdicts = [self.can_run(call, shape_of(n)) for n in orders]
        return [n for n in orders[:-1] if verdicts[n - 1] != verdicts[n]]


@cache
def _home(library):
    probe = library.asarray(np.ones((1, 1)))
    backend = backend_of(probe)
    return backend, backend.device(probe)


# On dpnp arrays asked in the slow tier only.
SELDOM = ("float32", "complex128")


def all_candidates(kinds=(NUMPY, DPNP, CUPY)):
    """Return every candidate of the array libraries that are installed."""
    return [
        Candidate(spec, library, dtype, choice)
        for spec in SPECS
        for library in kinds
        if is_present(library)
        for dtype in DTYPES
        for choice in spec.candidates(dtype, library.name)
    ]


def questions(kinds=(NUMPY, DPNP, CUPY), *, are_natives=None):
    """Return pytest parameters (candidate, call).

    In the fast tier a candidate is asked one of its op's calls, which one changes from
    candidate to candidate; for float64 on NumPy arrays it is asked all of them, for two
    dtypes on dpnp arrays, which run the same kernels, none. The slow tier asks the
    rest. ``are_natives`` leaves out families with or without a
    library.
    """
    found = []
    for place, candidate in enumerate(all_candidates(kinds)):
        if are_natives is candidate.choice.uses_library:
            continue
        every = candidate.library == NUMPY and candidate.dtype == "float64"
        none = candidate.library == DPNP and candidate.dtype in SELDOM
        for number, call in enumerate(candidate.calls):
            marks = [pytest.mark.gpu] if candidate.library == CUPY else []
            mine = place % len(candidate.calls) == number
            if none or not (every or mine):
                marks.append(pytest.mark.slow)
            name = f"{candidate}-{call}"
            found.append(pytest.param(candidate, call, id=name, marks=marks))
    return found
