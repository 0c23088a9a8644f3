"""The short way of calls whose decision is known: LAPACK, on a small NumPy stack.

The long way, with its checks, its decision and its status of every matrix, takes 10 us
and more. That is nothing beside a large stack, but three times as long as NumPy takes
for one 2x2 matrix. So the choice that the tables make for a small stack is remembered
here by dtype and shape, and where it is LAPACK, the next such call goes straight there.
Results are the same bit for bit. Whatever is out of the ordinary goes the long way:
matrices that fail or are not finite, pins, trace, coverage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy import ndarray

from batchlas import _select as select
from batchlas._backends import numpy as backend
from batchlas._ops import gesvd, potrf, syev
from batchlas._ops.families import Vendor
from batchlas._runtime.dtypes import NAME_OF
from batchlas._runtime.forks import in_forked_child
from batchlas._vendor.lapack_quick import quick_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from batchlas._backends import Backend
    from batchlas._vendor.lapack_quick import Quick

# Of larger stacks the long way is a few per cent, and they are many different ones.
MOST_ELEMENTS = 2**16
_LIMIT = 4096


class QuickOp:
    """What is remembered of one op's calls."""

    def __init__(
        self,
        spec: select.OpSpec,
        key_of: Callable[[Any, NDArray[Any], str], Any],
        *,
        any_shape: bool = False,
    ) -> None:
        self._spec, self._key_of, self._takes_all = spec, key_of, any_shape
        self._calls: dict[tuple[object, ...], Quick | None] = {}
        in_forked_child(self.forget)  # the long way says what a child cannot do

    def __call__(self, a: Any, option: str) -> tuple[NDArray[Any], ...] | None:
        """Return the results for `a`, or None if the call goes the long way.

        Parameters
        ----------
        a : object
            What the public function was given.
        option : str
            What the op's results depend on besides; see `batchlas._vendor.lapack`.
        """
        if type(a) is not ndarray or a.size > MOST_ELEMENTS:
            return None
        standing = select.standing()
        if standing is None:
            return None
        key = (a.dtype, a.shape, option, standing)
        try:
            call = self._calls[key]
        except KeyError:
            call = self._learn(key, a, option)
        return None if call is None else call(a)

    def forget(self) -> None:
        """Forget everything."""
        self._calls.clear()

    def _learn(
        self, key: tuple[object, ...], a: NDArray[Any], option: str
    ) -> Quick | None:
        """Remember what the tables choose for stacks like this one."""
        call = None
        if self._is_computed(a):
            key_of_call = self._key_of(backend, a, option)
            if select.pick(self._spec, key_of_call, backend.device(a)) == Vendor():
                call = quick_call(self._spec.op, a, option)
        if len(self._calls) >= _LIMIT:
            self.forget()
        self._calls[key] = call
        return call

    def _is_computed(self, a: NDArray[Any]) -> bool:
        """Whether the op takes `a` as it is; the long way says what is wrong."""
        if a.ndim < 2 or not a.size or a.dtype.char not in NAME_OF:
            return False
        return self._takes_all or a.shape[-1] == a.shape[-2]


def _syev_key(backend: Backend, a: NDArray[Any], option: str) -> syev.SyevCall:
    return syev.key_of(backend, a, vectors=option[0] == "V")


quick_potrf = QuickOp(potrf.SPEC, potrf.key_of)
"""By the triangle, "L" or "U"."""

quick_syev = QuickOp(syev.SPEC, _syev_key)
"""By "V" for vectors or "N" for none, and the triangle."""

quick_gesvd = QuickOp(gesvd.SPEC, gesvd.key_of, any_shape=True)
"""By the job, "all", "thin" or "none"."""
