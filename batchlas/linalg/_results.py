"""The result types: NumPy's own, and those of the functions that NumPy lacks."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

# NumPy names these types in no public module; a result's type is the way to them.
EighResult = type(np.linalg.eigh(np.eye(1)))
SVDResult = type(np.linalg.svd(np.eye(1)))


class CholeskyExResult(NamedTuple):
    """Result of `cholesky_ex`."""

    factor: Any
    info: Any


class EighExResult(NamedTuple):
    """Result of `eigh_ex`."""

    eigenvalues: Any
    eigenvectors: Any
    info: Any


class SVDExResult(NamedTuple):
    """Result of `svd_ex`; U and Vh are None where they were not asked for."""

    U: Any
    S: Any
    Vh: Any
    info: Any
