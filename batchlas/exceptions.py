"""Every error and warning type of batchlas.

All errors derive from the class that NumPy or Python would raise in the same place, so
that ``except numpy.linalg.LinAlgError`` in an existing script keeps working.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = [
    "BatchlasWarning",
    "BlasHealthError",
    "BorrowedTableWarning",
    "LinAlgError",
    "NoRouteError",
    "PinError",
    "SettingsError",
    "SpellingError",
    "StaleTableWarning",
    "TableError",
]


class BatchlasWarning(UserWarning):
    """Base of the warnings that batchlas gives; each is given once per cause."""


class BorrowedTableWarning(BatchlasWarning):
    """A device has no table of its own, so another device's table decides."""


class StaleTableWarning(BatchlasWarning):
    """A table that the user measured is older than the kernels that it ranks."""


class LinAlgError(np.linalg.LinAlgError):
    """A factorisation failed for some matrices of a stack.

    Parameters
    ----------
    message : str
        NumPy's text for the failure, then which matrices failed.
    indices : sequence of tuple of int
        Batch index of each failed matrix, in order; ``()`` for a single matrix.
    info : ndarray of int32, optional
        LAPACK's status of every matrix, of the batch's shape; 0 where it succeeded.
    """

    def __init__(
        self,
        message: str = "",
        indices: Sequence[tuple[int, ...]] = (),
        info: NDArray[np.int32] | None = None,
    ) -> None:
        super().__init__(message)
        self.indices = tuple(indices)
        self.info = info

    def __reduce__(
        self,
    ) -> tuple[type[LinAlgError], tuple[str, tuple[tuple[int, ...], ...], object]]:
        """Pickle all three parts; the default would drop the indices."""
        return type(self), (str(self), self.indices, self.info)


class BlasHealthError(RuntimeError):
    """The host's BLAS computes wrongly, and BATCHLAS_BLAS_HEALTH=error refuses it."""


class NoRouteError(RuntimeError):
    """No kernel can serve a call, as a rule because a vendor library is absent."""


class SettingsError(ValueError):
    """A BATCHLAS_* variable or a ``configure`` argument has an unusable value."""


class SpellingError(ValueError):
    """A text does not name a choice (``family`` or ``family:field=int``)."""


class PinError(ValueError):
    """A pin names a choice that does not exist or cannot run for this call."""


class TableError(ValueError):
    """A tuned table is malformed; the text begins with ``file:line:``."""
