"""LAPACK through NumPy over slices of the batch: the family ``threads``.

Results are those of `batchlas._vendor.lapack`, bit for bit: a matrix is never divided.
"""

from __future__ import annotations

from functools import partial

from batchlas._vendor import lapack

potrf = partial(lapack.potrf, threads=True)
syev = partial(lapack.syev, threads=True)
gesvd = partial(lapack.gesvd, threads=True)
