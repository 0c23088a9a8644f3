"""Whether the host's BLAS multiplies float64 matrices rightly.

Some OpenBLAS kernels do not on the very processors for which they are picked: 0.3.20's
Cooperlake kernel is off by 1 to 100 at some sizes while its sgemm is right. Everything
that LAPACK computes rests on that product. NumPy computes single precision in double
as well, so every dtype is concerned.

Decided here: how it is found out (once, before the first call of the library, in
milliseconds), what is done about it (BATCHLAS_BLAS_HEALTH), and what is advised. It is
never repaired from inside: OpenBLAS reads OPENBLAS_CORETYPE when it is loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import threadpoolctl

from batchlas._runtime.blas import blas
from batchlas._runtime.notices import warn_once
from batchlas._runtime.settings import settings
from batchlas.exceptions import BlasHealthError

if TYPE_CHECKING:
    from numpy.typing import NDArray

CORE_TYPE = "OPENBLAS_CORETYPE"
# Sizes at which the known defect shows; 64 and 256 happen to be right.
SIZES = (128, 200, 512)
# Rows and columns of the product that are compared.
_SAMPLED = 32
# Kernels to ask for instead, the fastest first.
CORE_TYPES = ("SkylakeX", "Haswell", "Zen", "Sandybridge", "Nehalem")
PROBE = "from batchlas._runtime import health; print(health.defect())"


def check_host_blas() -> None:
    """Warn or raise, as BATCHLAS_BLAS_HEALTH says, if the host's BLAS is broken.

    Raises
    ------
    BlasHealthError
        With "error", at every call; "warn" warns once per process.
    """
    mode = settings().blas_health
    if mode == "off":
        return
    found = defect()
    if not found:
        return
    if mode == "error":
        raise BlasHealthError(_message(found))
    warn_once("blas", _message(found))


def is_trusted() -> bool:
    """Whether `check_host_blas` has nothing to say while the settings stay."""
    return settings().blas_health == "off" or not defect()


@cache
def defect() -> str:
    """Return what is wrong with float64 products; empty if nothing was found."""
    largest = np.random.default_rng(0).uniform(-1, 1, (2, max(SIZES), max(SIZES)))
    for n in SIZES:
        a, b = np.ascontiguousarray(largest[:, :n, :n])
        error = _error(a, b, _product(a, b))
        if not error <= 4 * n * n * np.finfo(np.float64).eps:  # NaN is wrong too
            return f"the product of two {n}x{n} float64 matrices is off by {error:.3g}"
    return ""


def _product(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    with blas():  # a kernel is wrong in one thread too, and waking others takes time
        return a @ b


def _error(
    a: NDArray[np.float64], b: NDArray[np.float64], c: NDArray[np.float64]
) -> float:
    """Return the largest error of a sample of the product, against plain loops."""
    sample = slice(None, None, -(-len(a) // _SAMPLED))
    expected = np.einsum("ik,kj->ij", a[sample], b[:, sample], optimize=False)
    return float(np.abs(c[sample, sample] - expected).max())


def _message(found: str) -> str:
    return f"NumPy's BLAS ({blas_name()}) computes wrongly: {found}. {_advice()}"


def blas_name() -> str:
    """Return the library and the kernel that it has picked."""
    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas" and "numpy" in library["filepath"]:
            kernel = library.get("architecture", "unknown")
            return f"{library['internal_api']} {library['version']}, kernel {kernel}"
    return "of unknown kind"


def _advice() -> str:
    """Say what helps; the variable is OpenBLAS's, so it is read here and not set."""
    named = os.environ.get(CORE_TYPE)
    first = f"{CORE_TYPE}={named} is set: try without it. " if named else ""
    return (
        f"{first}`python -m batchlas doctor` finds a kernel that is right; OpenBLAS "
        f"takes it from the environment before Python starts, for example "
        f"export {CORE_TYPE}=Haswell. A newer NumPy may bring a newer OpenBLAS"
    )


def working_core_type() -> str | None:
    """Return a core type with which products are right, None if none was found.

    Each is tried in a process of its own, since it takes effect at a process's start.
    """
    for name in CORE_TYPES:
        done = subprocess.run(
            [sys.executable, "-c", PROBE],
            capture_output=True,
            check=False,
            env={**os.environ, CORE_TYPE: name},
            text=True,
            timeout=60,
        )
        if done.returncode == 0 and not done.stdout.strip():
            return name
    return None
