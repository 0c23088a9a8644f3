"""Which shapes are measured.

Orders put a point on both sides of the places where library routines and kernels change
their ways (8|9, 16|17, 32|33, 64|65); batches grow by four. Cells that are too large to
be worth their time are left out: the nearest one answers for them.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from batchlas.tune.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from batchlas._select import OpSpec

# fmt: off
ORDERS = (
    1, 2, 3, 4, 5, 6, 8, 9, 12, 16, 17, 24, 32, 33, 48, 64, 65, 96, 128, 192, 256, 384,
    512, 1024,
)
BATCHES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
# fmt: on
DTYPES = ("float64", "float32", "complex128", "complex64")
MOST_ELEMENTS = 2**22
# n^3 batch of the largest cell: about a second of a slow routine.
MOST_WORK = 2**27
# Values of gesvd's m/n beside 1; tall and wide are different algorithms.
ASPECTS = ((1, 1), (4, 1), (1, 4))


def calls(
    spec: OpSpec,
    dtype: str,
    kind: str,
    orders: Sequence[int] = ORDERS,
    batches: Sequence[int] = BATCHES,
) -> Iterator[Any]:
    """Yield the table keys to measure for one op, dtype and kind of array."""
    problem = PROBLEMS[spec.op]
    cells = itertools.product(problem.options, orders, batches)
    for option, n, batch in cells:
        if spec.op == "gesvd":
            for rows, columns in ASPECTS if n > 1 else ASPECTS[:1]:
                m, k = n * rows, n * columns
                if _is_worth(max(m, k), batch):
                    yield problem.call(dtype, kind, option, m, k, batch)
        elif _is_worth(n, batch):
            yield problem.call(dtype, kind, option, n, batch)


def _is_worth(n: int, batch: int) -> bool:
    return n * n * batch <= MOST_ELEMENTS and (batch == 1 or n**3 * batch <= MOST_WORK)
