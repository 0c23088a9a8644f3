"""Random walks of options, run as OpenCL: a schedule never changes a result."""

import random

import numpy as np
import pytest
from kernel_runs import run_opencl
from kernel_schedules import assert_same
from kernel_tails import packed_chol, rounds
from kernel_zoo import chol, gram, jac, nested_sums, solve, svd, syrk

from batchlas._kernels.options import Ok, PadTo, Split, Swap, Target
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import OPENCL

EXAMPLES = {
    "gram": gram(16, 4, 8),
    "chol": chol(16, 4),
    "masked": chol(16, 4, masked=True),
    "syrk": syrk(16, 4, 4),
    "solve": solve(16, 4, 4),
    "jac": jac(16, 3),
    "svd": svd(16, 4, 3),
    "nested": nested_sums(16, 4, 8),
    "packed": packed_chol(29, 4),
    "rounds": rounds(29),
}


def walk(example, seed):
    """A scheduler after up to six options that it accepted."""
    choose = random.Random(seed)
    k = Scheduler(example.kernel, OPENCL)
    k.convert_loop_to_global()
    accepted = 0
    for _ in range(60):
        axis, amount = choose.randrange(9), choose.choice([0, 2, 2, 3, 4, 4, 8])
        target, top = choose.choice(list(Target)), choose.random() < 0.3
        option = choose.choice(
            [
                Split(axis, amount, target, top),
                Split(axis, amount, target),
                PadTo(axis, max(amount, 2)),
                Swap(axis, choose.randrange(4)),
            ]
        )
        accepted += isinstance(k.apply_opt(option), Ok)
        if accepted == 1 + seed % 6:
            break
    return k


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", EXAMPLES)
def test_walks(queue, name, seed):
    example = EXAMPLES[name]
    kernel = walk(example, seed).get_optimized_ast()
    got = run_opencl(queue, kernel, example.make(), example.scalars)
    with np.errstate(all="ignore"):
        want = example.run()
    assert_same(example, got, want)
