"""Which optimisations a scheduler would accept next, and a search over them.

Moves are found by trying: axis by axis and target by target, with the amounts that
machines like.  The cost of a kernel is the caller's: a timing, or an estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from batchlas._kernels.digest import digest
from batchlas._kernels.ir import AxisRole
from batchlas._kernels.options import Ok, Option, Split, Target
from batchlas._kernels.walk import is_divisible

if TYPE_CHECKING:
    from collections.abc import Callable

    from batchlas._kernels.schedule import Scheduler

AMOUNTS = (2, 3, 4, 5, 8, 16, 32, 64, 128, 256)
LANES_MAX = 256  # unrolled copies in all: beyond it compiling takes seconds


def moves(k: Scheduler) -> list[Option]:
    """Return the splits that the scheduler would accept now, in a fixed order."""
    found: list[Option] = []
    for position, axis in enumerate(k.rngs()):
        if axis.role in {AxisRole.LOOP, AxisRole.UPCAST, AxisRole.VECTOR}:
            continue
        for amount in AMOUNTS:
            if is_divisible(axis.size, amount):
                splits = (Split(position, amount, target) for target in Target)
                found += [opt for opt in splits if _is_accepted(k, opt)]
    return found


def _is_accepted(k: Scheduler, opt: Option) -> bool:
    trial = k.copy()
    if not isinstance(trial.apply_opt(opt), Ok):
        return False
    lanes = trial.upcast_size()
    return isinstance(lanes, int) and lanes <= LANES_MAX


def beam_search(
    k: Scheduler, cost: Callable[[Scheduler], float], width: int = 4
) -> Scheduler:
    """Return the best schedule found by growing the `width` best step by step.

    It ends when a round does not improve on the best.  Schedules that come to the same
    code are tried once.
    """
    best, least = k, cost(k)
    beam = [k]
    seen = {digest(k.ast())}
    while True:
        grown: list[tuple[float, int, Scheduler]] = []
        for parent in beam:
            for opt in moves(parent):
                child = parent.copy()
                child.apply_opt(opt)
                mark = digest(child.ast())
                if mark not in seen:
                    seen.add(mark)
                    grown.append((cost(child), len(grown), child))
        grown.sort(key=lambda entry: entry[:2])
        if not grown or grown[0][0] >= least:
            return best
        least, _, best = grown[0]
        beam = [child for _, _, child in grown[:width]]
