"""Benchmarks against the peers that are installed, for people to read.

================  ====================================================================
functions         which functions can be compared, and what they are to an op
peers             the array libraries: how each is called, fairly
race              one shape: batchlas and its peers, checked, timed in turns
result            what came out: table, CSV
plots             pictures of many results, and the map of chosen families
command           ``python -m batchlas bench``
================  ====================================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas.bench.result import PEERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batchlas.bench.result import Result


def benchmark(
    op: str,
    shape: Sequence[int],
    dtype: str = "float64",
    against: Sequence[str] = PEERS,
    *,
    array: str | None = None,
    budget: float = 1.0,
) -> Result:
    """Time batchlas against the array libraries that are installed here.

    Parameters
    ----------
    op : str
        A function of `batchlas.linalg`: cholesky, eigh, eigvalsh, svd or svdvals (svd
        with ``full_matrices=False``); or LAPACK's name: potrf, syev, gesvd.
    shape : sequence of int
        Of the stack, such as ``(10_000, 8, 8)``.
    dtype : str, default "float64"
        float32, float64, complex64 or complex128.
    against : sequence of str
        Which peers of numpy, dpnp, cupy, torch and jax; those that are not installed
        are left out and listed as absent.
    array : {"numpy", "dpnp", "cupy"}, optional
        What batchlas is given; torch and jax compute on the same kind of device. CuPy
        arrays where there is a GPU, else NumPy arrays.
    budget : float, default 1.0
        Seconds to spend on timing, more or less.

    Returns
    -------
    Result
        ``print`` shows the table; ``rows`` has the times, ``to_csv`` writes them.

    Raises
    ------
    ValueError
        For an unknown function, peer or shape.
    RuntimeError
        While batchlas is installed in place of NumPy's functions.

    Notes
    -----
    All results are checked, the peers' too. Sides take turns in one process, and the
    first call of a turn does not count. Peers on the host run with one thread and with
    all, and the better of the two is told. Each side gets its own library's arrays: no
    transfer is timed. The floor is the time to read the input and write the results
    once, by copying.

    Examples
    --------
    >>> import batchlas
    >>> result = batchlas.benchmark("eigh", (1000, 4, 4), against=("numpy",))
    >>> [row.side for row in result.rows]
    ['batchlas', 'numpy']
    """
    from batchlas.bench.race import race

    return race(op, tuple(shape), dtype, tuple(against), array, budget)
