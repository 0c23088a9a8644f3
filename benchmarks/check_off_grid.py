"""Are the tables right between their rows? Shapes that are no row's, timed at random.

At each shape every candidate is timed in turns, and the one that the tables choose is
compared with the best. A shape that looks wrong is timed again for longer, since other
users of the machine also slow candidates down. The bar: within 15 % at every shape.

Prints a line per shape and a summary; the exit status is the number of shapes over the
bar, 99 at most.

Run: python benchmarks/check_off_grid.py [--op potrf] [--device sm_90] [--shapes 50]
"""

from __future__ import annotations

import argparse
import math
import random
from statistics import median

import batchlas
from batchlas._runtime.settings import settings
from batchlas._select import decide
from batchlas._select.store import table_store
from batchlas.tune import tables
from batchlas.tune.grid import ASPECTS, DTYPES, Cell, is_repeated, is_worth
from batchlas.tune.problems import PROBLEMS
from batchlas.tune.session import candidates, describe
from batchlas.tune.targets import targets
from batchlas.tune.timing import time_cell

BAR = 1.15
LARGEST_ORDER, LARGEST_BATCH = 300, 65536


def draw(rng, specs, found, dtypes):
    """Return a random cell, its logarithms uniform, that no row was measured for."""
    while True:
        spec, target = rng.choice(specs), rng.choice(found)
        n = round(math.exp(rng.uniform(0, math.log(LARGEST_ORDER))))
        batch = round(math.exp(rng.uniform(0, math.log(LARGEST_BATCH))))
        option = rng.choice(PROBLEMS[spec.op].options)
        aspect = rng.choice(ASPECTS) if spec.op == "gesvd" else (1,)
        extents = [n * units for units in aspect]
        kind, dtype = target.device.kind, rng.choice(dtypes)
        call = PROBLEMS[spec.op].call(dtype, kind, option, *extents, batch)
        if not is_worth(spec.op, call, target.device) or is_repeated(call):
            continue
        if not is_row(spec, target, call):
            return Cell(spec, target, call)


def is_row(spec, target, call) -> bool:
    store, device = table_store(settings()), target.device
    if device.key not in store.devices(spec.op):
        return False
    tuned = store.find(spec, device.key, call.dtype, device.kind)
    if tuned is None:
        return False
    keys = (*tuned.table.exact_keys, *tuned.table.log_keys)
    shape = tuple(str(call._asdict()[key.name]) for key in keys)
    return any((*row.exact, *map(str, row.log)) == shape for row in tuned.table.rows)


def ratio(cell, choice: str, seconds: float) -> tuple[float, str]:
    """Return the choice's time over the best's, and which that is."""
    times = time_cell(cell, candidates(cell), budget_s=seconds).times
    timed = {name: ms for name, ms in times.items() if ms is not None}
    best = min(timed, key=timed.__getitem__)
    return timed.get(choice, math.inf) / timed[best], best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    ops = {spec.op: spec for spec in tables.specs()}
    parser.add_argument("--op", choices=ops, action="append")
    parser.add_argument("--dtype", choices=DTYPES, action="append")
    parser.add_argument("--array", action="append", help="kind of array; default: all")
    parser.add_argument("--device", help="key of a device; default: the processor")
    parser.add_argument("--tuned", help="folder of the tables; default: those in force")
    parser.add_argument("--shapes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cell", type=float, default=0.2, help="seconds per shape")
    given = parser.parse_args()
    if given.tuned:
        batchlas.configure(tuned_dir=given.tuned)
    key = given.device or targets()[0].device.key
    found = [
        each
        for each in targets()
        if each.device.key == key
        and (given.array is None or each.device.kind in given.array)
    ]
    if not found:
        parser.error(f"no {given.array or 'arrays'} on {key} here")
    specs = [ops[name] for name in given.op or ops]
    rng = random.Random(given.seed)
    ratios = []
    for _ in range(given.shapes):
        cell = draw(rng, specs, found, given.dtype or DTYPES)
        decision = decide(cell.spec, cell.call, cell.target.device)
        choice = str(decision.choice)
        worst, best = ratio(cell, choice, given.cell)
        if worst > BAR:
            worst, best = min((worst, best), ratio(cell, choice, 5 * given.cell))
        ratios.append(worst)
        mark = f"  best {best}" if worst > BAR else ""
        print(f"{worst:6.2f}  {describe(cell)}: {choice}{mark}", flush=True)
    over = sum(each > BAR for each in ratios)
    print(
        f"{len(ratios)} shapes off the grid, {over} over {BAR:g}; "
        f"median {median(ratios):.3f}, worst {max(ratios):.2f}"
    )
    return min(over, 99)


if __name__ == "__main__":
    raise SystemExit(main())
