"""Authored threads and barriers: the verifier, and running them phase by phase."""

import numpy as np
import pytest
from kernel_zoo import F64, names, position
from kernel_zoo_threads import coop_chol, interleaved_solve

from batchlas._kernels.barriers import verify_barriers
from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.interpret import (
    DependenceError,
    InterpretError,
    check_independence,
    run,
)
from batchlas._kernels.ir import AxisRole, DType
from batchlas._kernels.options import Ok, Refused, Split, Target
from batchlas._kernels.rules import Facts
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA
from batchlas._kernels.threads import single_thread_axes
from batchlas._kernels.walk import statements

ORDERS = ("forward", "reverse", 1, 2)


def fresh(example):
    k = Scheduler(example.kernel, CUDA)
    k.convert_loop_to_global()
    return k


def test_cooperative_cholesky():
    example = coop_chol()
    verify_barriers(example.kernel)
    check_independence(example.kernel, example.make())
    k = fresh(example)
    verify_barriers(k.ast())
    assert names(k.rngs()[p] for p in k.axes_of((AxisRole.GLOBAL,))) == {"b"}
    want = np.linalg.cholesky(example.make()["a"])
    for order in ORDERS:
        got = example.run(k.get_optimized_ast(), order=order)["l"]
        np.testing.assert_allclose(got, want, atol=1e-12)


@pytest.mark.parametrize("number", range(4))
def test_every_barrier_of_it_is_asked_for(number):
    example = coop_chol(2, 4, 2, drop=number)
    with pytest.raises(ValueError, match="sh: threads need a barrier"):
        verify_barriers(example.kernel)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_running_without_a_barrier_is_found(number):
    example = coop_chol(2, 4, 2, drop=number)
    with pytest.raises(DependenceError, match="LOCAL axis t"):
        check_independence(example.kernel, example.make(), orders=ORDERS)


def test_rows_may_still_be_unrolled():
    example = coop_chol(2, 8, 2)
    k = fresh(example)
    for name in ("r1", "r2", "c2"):
        assert isinstance(k.apply_opt(Split(position(k, name), 2, Target.UPCAST)), Ok)
    want = np.linalg.cholesky(example.make()["a"])
    got = example.run(k.get_optimized_ast(), order=1)["l"]
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_more_threads_would_share_the_group_memory():
    k = fresh(coop_chol())
    for name in ("b", "r2", "t"):
        answer = k.apply_opt(Split(position(k, name), 2, Target.LOCAL))
        assert isinstance(answer, Refused)


def test_interleaved_copies():
    example = interleaved_solve()
    k = fresh(example)
    verify_barriers(k.ast())
    check_independence(k.ast(), example.make())
    # were g a loop of every thread, the next copy in could overtake the solve
    with pytest.raises(ValueError, match="threads need a barrier"):
        verify_barriers(example.kernel)
    with pytest.raises(DependenceError, match="LOCAL axis t"):
        check_independence(example.kernel, example.make())
    arrays = example.make()
    lower = arrays["a"].reshape(8, 3, 3)
    want = np.linalg.solve(lower, arrays["y"][..., None])[..., 0]
    for order in ORDERS:
        got = example.run(k.get_optimized_ast(), order=order)["y"]
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_one_thread_stores_what_does_not_depend_on_threads():
    facts = Facts(coop_chol().kernel)
    single = single_thread_axes(facts)
    alone = [
        stmt
        for stmt in statements(facts.kernel.body)
        if names(single.get(id(stmt), ())) == {"t"}
    ]
    assert [stmt.index[0].name for stmt in alone] == ["j"]


def two_phases(*, barrier, shift):
    w = KernelBuilder()
    x, y, sh = (
        w.array("x", F64, (4,)),
        w.array("y", F64, (4,)),
        w.local("sh", F64, (4,)),
    )
    with w.threads(4, "t") as t:
        sh[t] = x[t]
        if barrier:
            w.barrier()
        y[t] = sh[(t + shift) % 4] if shift else sh[t]
    return w.finish()


def test_own_cells_need_no_barrier():
    verify_barriers(two_phases(barrier=False, shift=0))


@pytest.mark.parametrize("barrier", [True, False])
def test_cells_of_others_do(barrier):
    kernel = two_phases(barrier=barrier, shift=1)
    arrays = {"x": np.arange(4.0), "y": np.zeros(4)}
    if barrier:
        verify_barriers(kernel)
        run(kernel, arrays, order=5)
        np.testing.assert_array_equal(arrays["y"], [1.0, 2.0, 3.0, 0.0])
        return
    with pytest.raises(ValueError, match="threads need a barrier"):
        verify_barriers(kernel)
    with pytest.raises(InterpretError):
        check_independence(kernel, arrays)


def test_the_end_of_a_serial_loop_meets_its_beginning():
    def kernel(*, closed):
        w = KernelBuilder()
        y, sh = w.array("y", F64, (4,)), w.local("sh", F64, (4,))
        with w.threads(4, "t") as t, w.serial(3, "j"):
            sh[t] = y[t]
            w.barrier()
            y[t] = sh[(t + 1) % 4]
            if closed:
                w.barrier()
        return w.finish()

    verify_barriers(kernel(closed=True))
    with pytest.raises(ValueError, match="threads need a barrier"):
        verify_barriers(kernel(closed=False))


def test_a_gate_only_separates_within_one_step_of_the_loop():
    w = KernelBuilder()
    sh = w.local("sh", F64, (5,))
    with w.threads(4, "t") as t, w.serial(4, "j") as j, w.where(t > j):
        sh[t] = sh[j]
    # w[t] with t > j stays off w[j], but not off the next step's w[j]
    with pytest.raises(ValueError, match="threads need a barrier"):
        verify_barriers(w.finish())


def test_a_barrier_in_divergent_flow():
    w = KernelBuilder()
    x = w.array("x", F64, (4,))
    with w.threads(4, "t") as t:
        with w.guard(t < 2):
            w.barrier()
        x[t] = 1.0
    kernel = w.finish()
    with pytest.raises(ValueError, match="depends on a LOCAL axis"):
        verify_barriers(kernel)
    with pytest.raises(InterpretError, match="only some threads"):
        run(kernel, {"x": np.zeros(4)})


def countdown(*, uniform):
    """Each thread counts down from its own number; a barrier is inside."""
    w = KernelBuilder()
    x, y, r = w.array("x", F64, (4,)), w.array("y", F64, (4,)), w.register("r", F64)
    with w.threads(4, "t") as t:
        r.set(x[t])
        with w.repeat(uniform=uniform) as loop:
            y[t] = y[t] + 1.0
            w.barrier()
            r.set(r.get() - 1.0)
            loop.again_while(r.get() > 0.0)
    return w.finish()


def test_a_uniform_repeat_may_hold_barriers_and_masks_the_finished():
    kernel = countdown(uniform=True)
    verify_barriers(kernel)
    for order in ORDERS:
        arrays = {"x": np.array([1.0, 4.0, 2.0, 3.0]), "y": np.zeros(4)}
        run(kernel, arrays, order=order)
        np.testing.assert_array_equal(arrays["y"], arrays["x"])


def test_another_repeat_may_not():
    kernel = countdown(uniform=False)
    with pytest.raises(ValueError, match="depends on a LOCAL axis"):
        verify_barriers(kernel)
    with pytest.raises(InterpretError, match="only some threads"):
        run(kernel, {"x": np.array([1.0, 4.0, 2.0, 3.0]), "y": np.zeros(4)})


def test_threads_for_the_batch_would_part_at_a_barrier():
    w = KernelBuilder()
    x, y, r = w.array("x", F64, (4,)), w.array("y", F64, (4, 2)), w.register("r", F64)
    with w.weak(4, "b") as b, w.threads(2, "t") as t:
        r.set(x[b])
        with w.repeat() as loop:
            y[b, t] = y[b, t] + 1.0
            w.barrier()
            r.set(r.get() - 1.0)
            loop.again_while(r.get() > 0.0)
    kernel = w.finish()
    verify_barriers(kernel)
    k = Scheduler(kernel, CUDA)
    k.convert_loop_to_global()
    answer = k.apply_opt(Split(position(k, "b"), 2, Target.LOCAL))
    assert isinstance(answer, Refused)
    assert "depends on a LOCAL axis" in answer.reason


def test_every_thread_writing_one_cell():
    w = KernelBuilder()
    x, y = w.array("x", F64, (4,)), w.array("y", F64, (1,))
    with w.threads(4, "t") as t:
        y[0] = x[t]
    with pytest.raises(ValueError, match="every thread writes"):
        verify_barriers(w.finish())


def test_kernels_without_authored_threads_pass():
    from kernel_zoo import chol

    verify_barriers(chol().kernel)


def test_every_group_fills_its_own_memory():
    w = KernelBuilder()
    y, sh = w.array("y", F64, (4,)), w.local("sh", F64, (1,))
    with w.weak(4, "b") as b:
        sh[0] = 2.0
        y[b] = sh[0]
    k = Scheduler(w.finish(), CUDA)
    k.convert_loop_to_global()
    assert k.axis_types() == [AxisRole.GLOBAL]
    arrays = {"y": np.zeros(4)}
    run(k.ast(), arrays)  # a group that left the store to another would find nothing
    np.testing.assert_array_equal(arrays["y"], [2.0] * 4)


def test_threads_meet_within_one_statement():
    w = KernelBuilder()
    sh = w.local("sh", F64, (4,))
    with w.threads(4, "t") as t:
        sh[t] = 1.0
        w.barrier()
        sh[t] = sh[(t + 1) % 4]
    with pytest.raises(ValueError, match="threads need a barrier"):
        verify_barriers(w.finish())


def test_a_gate_separates_only_from_what_all_threads_agree_on():
    def kernel(serial):
        w = KernelBuilder()
        sh = w.local("sh", F64, (4,))
        loop = w.serial(4, "c") if serial else w.weak(4, "c")
        with w.threads(4, "t") as t, loop as c:
            with w.where(t > c):
                sh[t] = sh[c]
            w.barrier()
        return w.finish()

    verify_barriers(kernel(serial=True))
    # threads of a weak loop are not at the same c
    with pytest.raises(ValueError, match="threads need a barrier"):
        verify_barriers(kernel(serial=False))


def test_a_gate_does_not_separate_from_a_register():
    w = KernelBuilder()
    sh, r = w.local("sh", F64, (4,)), w.register("r", DType.INT64)
    with w.threads(4, "t") as t:
        r.set(3 - t)
        with w.where(t > r.get()):
            sh[t] = sh[r.get()]
    with pytest.raises(ValueError, match="threads need a barrier"):
        verify_barriers(w.finish())


def test_one_thread_needs_no_barrier_for_itself():
    w = KernelBuilder()
    y, sh = w.array("y", F64, (4,)), w.local("sh", F64, (2,))
    with w.threads(4, "t") as t:
        sh[0] = 1.0
        sh[1] = sh[0] + 1.0
        w.barrier()
        y[t] = sh[1]
    kernel = w.finish()
    verify_barriers(kernel)
    arrays = {"y": np.zeros(4)}
    run(kernel, arrays, order="reverse")
    np.testing.assert_array_equal(arrays["y"], [2.0] * 4)
