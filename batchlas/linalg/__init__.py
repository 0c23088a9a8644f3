"""Linear algebra on stacks of matrices, with numpy.linalg's names and meanings."""

from batchlas.linalg._cholesky import cholesky, cholesky_ex
from batchlas.linalg._eigen import eigh, eigh_ex, eigvalsh
from batchlas.linalg._results import CholeskyExResult, EighExResult, SVDExResult
from batchlas.linalg._svd import svd, svd_ex, svdvals

__all__ = [
    "CholeskyExResult",
    "EighExResult",
    "SVDExResult",
    "cholesky",
    "cholesky_ex",
    "eigh",
    "eigh_ex",
    "eigvalsh",
    "svd",
    "svd_ex",
    "svdvals",
]
