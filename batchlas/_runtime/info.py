"""The status of every matrix: what it says.

One int32 per matrix, on the device of the stack. 0 is good; a positive number says what
failed, as LAPACK does (the order of a minor, or 1 where nothing is counted); none is
negative, and a library's own negative status, a wrong argument, counts as a failure.

Each op writes the status of a matrix once, and that of a nested op passes through it
unchanged, so no launch can wipe out what another one has reported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def from_flags(failed: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Return the status of matrices of which is known only whether they failed."""
    return failed.astype(np.int32)
