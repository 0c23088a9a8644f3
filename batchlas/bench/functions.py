"""Which functions can be compared, and what each is to the op that serves it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from batchlas.tune.problems import PROBLEMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DTYPES = ("float32", "float64", "complex64", "complex128")


@dataclass(frozen=True, slots=True)
class Function:
    """A function of numpy.linalg.

    Attributes
    ----------
    name, op : str
        NumPy's name, and the op's.
    option : str
        The op's own key: a triangle or which vectors.
    outputs : tuple of str
        Shapes of the results in m, n and k = min(m, n), for counting bytes.
    """

    name: str
    op: str
    option: str
    outputs: tuple[str, ...]

    def call(self, kind: str, shape: Sequence[int], dtype: str) -> Any:
        """Return the table key of a call."""
        *batch, m, n = shape
        option = self.option if self.option != "thin" or m != n else "all"
        extents = (m, n) if self.op == "gesvd" else (n,)
        return PROBLEMS[self.op].call(dtype, kind, option, *extents, prod(batch))

    def stack(self, shape: Sequence[int], dtype: str) -> NDArray[Any]:
        """Return a random input on the host."""
        call = self.call("numpy", shape, dtype)
        made = PROBLEMS[self.op].make(call, np.random.default_rng(0))
        return made.reshape(shape)

    def error(self, a: NDArray[Any], results: list[NDArray[Any]]) -> float:
        """Return the worst error of a result in units of n eps |a|."""
        call = self.call("numpy", a.shape, str(a.dtype))
        stacks = [each.reshape(-1, *each.shape[a.ndim - 2 :]) for each in results]
        flat = a.reshape(-1, *a.shape[-2:])
        return PROBLEMS[self.op].error(call, flat, stacks)

    def moved_bytes(self, shape: Sequence[int], dtype: str) -> int:
        """Return the bytes that must be read and written at least."""
        *batch, m, n = shape
        sizes = {"m": m, "n": n, "k": min(m, n)}
        letters = ("mn", *self.outputs)
        elements = sum(prod(sizes[each] for each in word) for word in letters)
        return prod(batch) * elements * np.dtype(dtype).itemsize


FUNCTIONS = {
    each.name: each
    for each in (
        Function("cholesky", "potrf", "L", ("nn",)),
        Function("eigh", "syev", "V", ("n", "nn")),
        Function("eigvalsh", "syev", "N", ("n",)),
        Function("svd", "gesvd", "thin", ("mk", "k", "kn")),
        Function("svdvals", "gesvd", "none", ("k",)),
    )
}
_BY_OP = {"potrf": "cholesky", "syev": "eigh", "gesvd": "svd"}


def function_of(name: str) -> Function:
    """Return a function by NumPy's name or by the op's.

    Raises
    ------
    ValueError
        For another name.
    """
    function = FUNCTIONS.get(_BY_OP.get(name, name))
    if function is None:
        allowed = ", ".join([*FUNCTIONS, *_BY_OP])
        message = f"cannot benchmark {name!r}; allowed: {allowed}"
        raise ValueError(message)
    return function


def check_shape(function: Function, shape: Sequence[int], dtype: str) -> None:
    """Refuse a shape or dtype that the function does not take.

    Raises
    ------
    ValueError
    """
    if len(shape) < 3 or min(shape) < 1:
        message = f"a stack has at least three dimensions, none of them 0, not {shape}"
        raise ValueError(message)
    if function.op != "gesvd" and shape[-1] != shape[-2]:
        message = f"{function.name} takes square matrices, not {shape[-2]}x{shape[-1]}"
        raise ValueError(message)
    if dtype not in DTYPES:
        message = f"cannot benchmark {dtype!r}; allowed: {', '.join(DTYPES)}"
        raise ValueError(message)
