"""A script like any other: it knows numpy.linalg and, if present, dpnp.linalg.

Run it as it is, or with its linear algebra sent elsewhere, without changing a line:

    python examples/plain_numpy.py
    python -m batchlas run examples/plain_numpy.py
"""

from types import ModuleType
from typing import Any

import numpy as np

STACKS = ((500, 2), (200, 3), (60, 8), (20, 33))  # matrices, order
DECADES = (1e-13, 1e-10, 1e-7, 1e-4, 1.0)


def covariances(count: int, n: int, seed: int) -> Any:
    """Return covariance matrices of random samples, (count, n, n)."""
    samples = np.random.default_rng(seed).standard_normal((count, 4 * n, n))
    return samples.swapaxes(1, 2) @ samples / (4 * n)


def size(difference: Any) -> str:
    """Say below which power of ten the largest entry lies."""
    largest = float(abs(difference).max())
    for decade in DECADES:
        if largest < decade:
            return f"below {decade:.0e}"
    return "WRONG"


def summarise(xp: Any, name: str) -> None:
    """Factor each stack with one library and print how well it went."""
    for seed, (count, n) in enumerate(STACKS):
        a = xp.asarray(covariances(count, n, seed))
        w, v = xp.linalg.eigh(a)
        factor = xp.linalg.cholesky(a)
        u, s, vh = xp.linalg.svd(a, full_matrices=False)
        print(f"{name}: {count} matrices of order {n}, of type {type(a).__name__}")
        print(f"  a v - v w        {size(a @ v - v * w[:, None, :])}")
        print(f"  a - L L^T        {size(a - factor @ factor.swapaxes(1, 2))}")
        print(f"  a - U S Vh       {size(a - (u * s[:, None, :]) @ vh)}")
        print(f"  eigenvalues from {float(w.min()):.6f} to {float(w.max()):.6f}")


def dpnp_with_a_device() -> ModuleType | None:
    """Return dpnp, or None where it is absent or has nothing to run on."""
    try:
        import dpctl
        import dpnp
    except ImportError:
        return None
    return dpnp if dpctl.get_devices() else None


if __name__ == "__main__":
    summarise(np, "numpy")
    dpnp = dpnp_with_a_device()
    if dpnp is not None:
        summarise(dpnp, "dpnp")
