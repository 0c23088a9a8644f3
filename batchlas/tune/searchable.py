"""Families whose knob is the amount of one split, and which amounts are legal.

The scheduler is asked which amounts it accepts; what does not fit in a thread's memory
is pruned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from batchlas._kernels import potrf as potrf_kernel
from batchlas._kernels.kinds import DType
from batchlas._kernels.limits import fits_in_private_memory
from batchlas._kernels.options import Ok, Split, Target
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.search import AMOUNTS
from batchlas._kernels.target import OPENCL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from batchlas._kernels.ir import Kernel


@dataclass(frozen=True, slots=True)
class Searchable:
    """A family whose knob is the amount of one split of its kernel.

    Attributes
    ----------
    op, family : str
    knob : str
        The family's field.
    axis : str
        The kernel's axis that is split.
    target : Target
        What the split is for.
    kernel : callable (n, dtype, amount) -> Kernel
        The driver's kernel, unscheduled.
    fits : callable (n, dtype, amount) -> bool
        Whether it has the memory; prunes what the scheduler would accept.
    rest : str
        How the spelling goes on after the knob.
    """

    op: str
    family: str
    knob: str
    axis: str
    target: Target
    kernel: Callable[[int, DType, int], Kernel]
    fits: Callable[[int, str, int], bool]
    rest: str = ""

    def schedulers(self, n: int, dtype: str) -> Iterator[tuple[int, Scheduler]]:
        """Yield every legal value of the knob, with its split applied."""
        for amount in AMOUNTS:
            if not self.fits(n, dtype, amount):
                continue
            k = Scheduler(self.kernel(n, DType(dtype), amount), OPENCL)
            k.convert_loop_to_global()
            axis = [each.name for each in k.rngs()].index(self.axis)
            if isinstance(k.apply_opt(Split(axis, amount, self.target)), Ok):
                yield amount, k

    def spelling(self, amount: int) -> str:
        """Return the choice that a value of the knob makes."""
        return f"{self.family}:{self.knob}={amount}{self.rest}"


def _potrf_lane(n: int, dtype: DType, width: int) -> Kernel:
    run = width // 2 if dtype.is_complex else width
    return potrf_kernel.potrf(n, dtype, "L", run, width, ahead=width)


SEARCHABLE = (
    Searchable(
        op="potrf",
        family="lane",
        knob="width",
        axis="b",
        target=Target.VECTOR,
        kernel=_potrf_lane,
        fits=fits_in_private_memory,
        rest=":ahead=1",
    ),
)
