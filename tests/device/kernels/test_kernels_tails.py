"""Batches that do not fill the last vector or group: nothing outside is touched."""

import pytest
from kernel_runs import run_opencl
from kernel_schedules import LOCAL, VECTOR, assert_same, scheduled, split
from kernel_tails import TAILS, staged

from batchlas._kernels.target import OPENCL

SCHEDULES = {
    "plain": (),
    "threads": (split("b", 16, LOCAL),),
    "vectors 8": (split("b", 8, VECTOR),),
    "vectors 16": (split("b", 16, VECTOR),),
    "threads and vectors": (split("b", 4, LOCAL), split("b", 4, VECTOR)),
}


@pytest.mark.parametrize("nb", [1, 7, 8, 9, 17, 33])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", TAILS)
def test_tails(queue, name, schedule, nb):
    example = TAILS[name](nb)
    kernel = scheduled(example, OPENCL, SCHEDULES[schedule])
    got = run_opencl(queue, kernel, example.make(), example.scalars)
    assert_same(example, got, example.run())


@pytest.mark.parametrize("nb", [1, 7, 8, 9, 17, 33])
def test_lanes_side_by_side_in_group_memory(queue, nb):
    example = staged(nb)
    kernel = scheduled(example, OPENCL, (split("v", 8, VECTOR),))
    got = run_opencl(queue, kernel, example.make(), example.scalars)
    assert_same(example, got, example.run(kernel))


def test_an_empty_batch_launches_nothing(queue):
    example = TAILS["gated"](1)
    kernel = scheduled(example, OPENCL, SCHEDULES["vectors 8"])
    arrays = example.make()
    got = run_opencl(queue, kernel, arrays, {"nb": 0, "padded": 0})
    assert_same(example, got, arrays)
