"""Votes of vector lanes, and registers that each lane reads in its own order."""

import numpy as np
import pytest

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.functions import any_lane, cast, where
from batchlas._kernels.interpret import check_independence, run
from batchlas._kernels.ir import INDEX, Const, DType
from batchlas._kernels.options import Ok, Refused, Split, Target
from batchlas._kernels.render import render
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA, DPEX, OPENCL

F64 = DType.FLOAT64


def halved(nb=8):
    """Halve every number until it is below 1, counting the rounds of its vector.

    `rounds` is one register for all lanes; `steps` is each lane's own.
    """
    k = KernelBuilder("halved")
    x, y = k.array("x", F64, (nb,)), k.array("y", F64, (nb,))
    steps, loops = k.array("steps", INDEX, (nb,)), k.array("loops", INDEX, (nb,))
    with k.weak(nb, "b") as b:
        value = k.variable(x[b], "value")
        mine, rounds = k.variable(Const(0, INDEX)), k.register("rounds", INDEX)
        rounds.set(0)
        with k.repeat() as again:
            large = k.let(value[()] >= 1, "large")
            mine.set(mine[()] + where(large, Const(1, INDEX), 0))
            value.set(where(large, value[()] * 0.5, value[()]))
            rounds.set(rounds[()] + 1)
            again.again_while(any_lane(value[()] >= 1))
        y[b], steps[b], loops[b] = value[()], mine[()], rounds[()]
    return k.finish()


def turned(nb=8, n=4):
    """Read a register array from each lane's own start on."""
    k = KernelBuilder("turned")
    start = k.array("start", INDEX, (nb,))
    x, y = k.array("x", F64, (nb, n)), k.array("y", F64, (nb, n))
    cells = k.register("cells", F64, (n,))
    with k.weak(nb, "b") as b:
        with k.serial(n, "i") as i:
            cells[i] = x[b, i]
        first = k.let(start[b], "first")
        with k.serial(n, "j") as j:
            y[b, j] = k.let(cells[(first + j) % n], "z")
    return k.finish()


def in_vectors(kernel, width=4):
    k = Scheduler(kernel, OPENCL)
    k.convert_loop_to_global()
    batch = [axis.name for axis in k.rngs()].index("b")
    assert isinstance(k.apply_opt(Split(batch, width, Target.VECTOR)), Ok)
    return k.get_optimized_ast()


def halved_arrays():
    x = np.array([0.5, 9.0, 1.0, 3.0, 0.25, 0.5, 0.75, 2.0])
    zeros = np.zeros(8, np.int64)
    return {"x": x, "y": np.zeros(8), "steps": zeros, "loops": zeros.copy()}


STEPS = [0, 4, 1, 2, 0, 0, 0, 2]


def test_lanes_go_on_while_one_of_them_wants_to():
    alone, together = halved_arrays(), halved_arrays()
    run(halved(), alone)
    run(in_vectors(halved()), together)
    for found in (alone, together):
        assert found["steps"].tolist() == STEPS
        np.testing.assert_array_equal(found["y"], found["x"] / 2.0 ** np.array(STEPS))
    assert alone["loops"].tolist() == [1, 4, 1, 2, 1, 1, 1, 2]
    assert together["loops"].tolist() == [4] * 4 + [2] * 4


def test_a_vote_leaves_steps_independent():
    check_independence(halved(), halved_arrays())


def test_only_votes_keep_a_register_one_for_all_lanes():
    source = render(in_vectors(halved()), OPENCL).source
    assert "any(" in source
    assert "live" not in source
    assert "long rounds = 0" in source
    assert "double4 value" in source


@pytest.mark.parametrize("ren", [CUDA, DPEX], ids=lambda ren: ren.name)
def test_without_vectors_a_vote_is_the_condition(ren):
    k = Scheduler(halved(), ren)
    k.convert_loop_to_global()
    assert "any" not in render(k.get_optimized_ast(), ren).source.replace("kapi", "")


def test_unrolled_copies_cannot_vote():
    k = Scheduler(halved(), OPENCL)
    k.convert_loop_to_global()
    answer = k.apply_opt(Split(0, 4, Target.UPCAST))
    assert isinstance(answer, Refused)


def test_a_vote_after_the_loop_would_see_its_last_step_only():
    k = KernelBuilder("late")
    x, y = k.array("x", F64, (8,)), k.array("y", F64, (1,))
    last = k.register("last", F64)
    with k.weak(8, "b") as b:
        last.set(x[b])
    y[0] = where(any_lane(last[()] > 0), Const(1.0, F64), 0)
    scheduler = Scheduler(k.finish(), OPENCL)
    answer = scheduler.apply_opt(Split(0, 4, Target.VECTOR))
    assert isinstance(answer, Refused)
    assert "holds the last step" in answer.reason


def test_bounds_may_hang_on_votes_but_not_on_lanes():
    def bounded(vote):
        k = KernelBuilder("bounded")
        x, y = k.array("x", F64, (8,)), k.array("y", F64, (8,))
        count = k.register("count", INDEX)
        with k.weak(8, "b") as b:
            large = x[b] > 0
            count.set(where(any_lane(large) if vote else large, Const(3, INDEX), 1))
            total = k.variable(Const(0.0, F64), "total")
            with k.serial(count[()], "i") as i:
                total.set(total[()] + cast(i, F64))
            y[b] = total[()]
        return Scheduler(k.finish(), OPENCL)

    assert isinstance(bounded(vote=True).apply_opt(Split(0, 4, Target.VECTOR)), Ok)
    refused = bounded(vote=False).apply_opt(Split(0, 4, Target.VECTOR))
    assert isinstance(refused, Refused)
    assert "differs between lanes" in refused.reason


def turned_arrays():
    x = np.arange(32.0).reshape(8, 4)
    return {"start": np.arange(8) % 4, "x": x, "y": np.zeros((8, 4))}


def test_each_lane_reads_its_registers_in_its_own_order():
    for kernel in (turned(), in_vectors(turned())):
        arrays = turned_arrays()
        run(kernel, arrays)
        for b in range(8):
            want = np.roll(arrays["x"][b], -(b % 4))
            np.testing.assert_array_equal(arrays["y"][b], want)


def test_lanes_still_write_their_registers_together():
    k = KernelBuilder("scattered")
    start = k.array("start", INDEX, (8,))
    y, cells = k.array("y", F64, (8,)), k.register("cells", F64, (4,))
    with k.weak(8, "b") as b:
        cells[start[b]] = Const(1.0, F64)
        y[b] = cells[0]
    answer = Scheduler(k.finish(), OPENCL).apply_opt(Split(0, 4, Target.VECTOR))
    assert isinstance(answer, Refused)
    assert "no constant stride" in answer.reason
