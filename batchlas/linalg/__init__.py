"""Linear algebra on stacks of matrices, with numpy.linalg's names and meanings.

NumPy, dpnp and CuPy arrays are computed where they are. Dask arrays are computed block
by block, lazily; their last two axes become one chunk, so one large matrix in several
chunks is better served by dask.array.linalg. A LinAlgError then comes from ``compute``,
and its indices count from the start of the block. The functions give way to other
types that have ``__array_function__``.
"""

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
