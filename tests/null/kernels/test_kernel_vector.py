"""Vector lanes: own registers, masks, what they refuse."""

import numpy as np
import pytest
from kernel_zoo import (
    F64,
    call,
    chol,
    gram,
    jac,
    nested_sums,
    position,
    solve,
    svd,
    syrk,
)
from kernel_zoo_threads import register_chol

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.interpret import check_independence, run
from batchlas._kernels.ir import AxisRole, DType
from batchlas._kernels.options import Ok, Refused, Split, Target
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import OPENCL

VECTOR = Target.VECTOR


def fresh(example_or_builder):
    kernel = getattr(example_or_builder, "kernel", None)
    k = Scheduler(kernel or example_or_builder.finish(), OPENCL)
    k.convert_loop_to_global()
    return k


def reason_for(k, name, amount=4):
    answer = k.copy().apply_opt(Split(position(k, name), amount, VECTOR))
    assert isinstance(answer, Refused)
    return answer.reason


@pytest.mark.parametrize(
    "example",
    [
        gram(4, 3, 4),
        chol(4, 4),
        chol(4, 3, masked=True),
        syrk(4, 3, 3),
        solve(4, 3, 2),
        jac(4, 3),
        svd(4, 4, 3),
        nested_sums(4, 2, 3),
    ],
)
def test_the_batch_axis_of_every_kernel(example):
    k = fresh(example)
    answer = k.apply_opt(Split(position(k, "b"), 4, VECTOR))
    assert isinstance(answer, Ok)
    assert answer.axes[1].role is AxisRole.VECTOR
    want, got = example.run(), example.run(k.get_optimized_ast(), order="reverse")
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("nb", [8, 5, 11])
@pytest.mark.parametrize("target", [VECTOR, Target.LOCAL])
def test_a_matrix_in_registers_with_a_guarded_batch(nb, target):
    example = register_chol(3, nb)
    check_independence(example.kernel, example.make(), example.scalars)
    k = fresh(example)
    assert position(k, "b") not in k.upcastable_dims()
    assert isinstance(k.apply_opt(Split(position(k, "b"), 4, target)), Ok)
    got = example.run(k.get_optimized_ast(), order=1)["l"]
    want = np.linalg.cholesky(example.make()["a"])
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_a_finished_lane_stores_nothing_more():
    example = jac(4, 3, max_sweeps=9)
    make = example.make

    def mixed():
        arrays = make()
        arrays["a"][1] = np.diag([1.0, 2.0, 3.0])  # done after one sweep
        arrays["a"][2] = np.nan
        return arrays

    example.make = mixed
    k = fresh(example)
    assert isinstance(k.apply_opt(Split(position(k, "b"), 4, VECTOR)), Ok)
    want, got = example.run(), example.run(k.get_optimized_ast())
    assert len(set(want["sweeps"])) > 1
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value)


def test_two_vector_axes_are_refused():
    k = fresh(gram(8, 4, 4))
    assert isinstance(k.apply_opt(Split(0, 4, VECTOR)), Ok)
    assert "another axis" in reason_for(k, "i")


def test_what_vectors_refuse():
    assert "a bound reads" in reason_for(fresh(syrk(4, 4, 4)), "i")
    assert "opaque" in reason_for(fresh(call(4, 4)), "b")
    assert "a reduction closes" in reason_for(fresh(gram(4, 4, 4)), "k")
    assert "LOOP" in reason_for(fresh(chol(4, 4)), "j")


def test_registers_left_behind_are_refused():
    w = KernelBuilder()
    x, y, r = w.array("x", F64, (8,)), w.array("y", F64, (1,)), w.register("r", F64)
    with w.weak(8, "i") as i:
        r.set(x[i])
    y[0] = r.get()
    assert "holds the last step" in reason_for(fresh(w), "i")


def subscript(index, size=64):
    w = KernelBuilder()
    x, y = w.array("x", F64, (size,)), w.array("y", F64, (8,))
    where = w.array("where", DType.INT64, (8,))
    r = w.register("r", DType.INT64)
    with w.weak(8, "b") as b:
        y[b] = x[index(w, b, where, r)]
    return fresh(w)


@pytest.mark.parametrize(
    "index",
    [
        lambda w, b, where, r: b,
        lambda w, b, where, r: 63 - b * 3,
        lambda w, b, where, r: (b + 1) * 4 + 2,
        lambda w, b, where, r: where[0],
    ],
)
def test_constant_strides_and_splats(index):
    k = subscript(index)
    assert isinstance(k.apply_opt(Split(0, 4, VECTOR)), Ok)


def through_register(w, b, where, r):
    r.set(where[b])
    return r.get()


@pytest.mark.parametrize(
    "index",
    [
        lambda w, b, where, r: b // 2,
        lambda w, b, where, r: b % 4,
        lambda w, b, where, r: b * b,
        lambda w, b, where, r: where[b],
        lambda w, b, where, r: w.let(where[b], "at"),
        through_register,
    ],
)
def test_gathers_are_refused(index):
    assert "no constant stride" in reason_for(subscript(index), "b")


def test_a_bound_from_a_register_of_the_lane_is_refused():
    w = KernelBuilder()
    x, count = w.array("x", F64, (8, 4)), w.array("count", DType.INT64, (8,))
    r = w.register("r", DType.INT64)
    with w.weak(8, "b") as b:
        r.set(count[b])
        with w.weak(r.get(), "i") as i:
            x[b, i] = 1.0
    assert "bound reads a register" in reason_for(fresh(w), "b")


def test_vector_lanes_keep_their_own_registers():
    w = KernelBuilder()
    x, r = w.array("x", F64, (8,)), w.register("r", F64, (2,))
    with w.nest(AxisRole.VECTOR, (8,), ("v",)) as (v,):
        r[0] = x[v]
        r[1] = 2.0 * r[0]
        x[v] = r[1] + r[0]
    arrays = {"x": np.arange(8.0)}
    run(w.finish(), arrays)
    np.testing.assert_array_equal(arrays["x"], 3 * np.arange(8.0))


def test_unrolled_lanes_share_registers():
    w = KernelBuilder()
    x, r = w.array("x", F64, (4,)), w.register("r", F64)
    with w.nest(AxisRole.UPCAST, (4,), ("u",)) as (u,):
        r.set(x[u])
        x[u] = r.get()
    arrays = {"x": np.arange(4.0)}
    run(w.finish(), arrays)
    # the last lane's value is left in the one register: why rules refuse such lanes
    np.testing.assert_array_equal(arrays["x"], [3.0] * 4)


def test_a_register_that_all_lanes_set_alike_is_no_meeting():
    w = KernelBuilder()
    x, y, r = w.array("x", F64, (4,)), w.array("y", F64, (4, 4)), w.register("r", F64)
    with w.weak(4, "b") as b, w.weak(4, "i") as i:
        r.set(x[b])
        y[b, i] = 2.0 * r.get()
    k = fresh(w)
    assert isinstance(k.apply_opt(Split(position(k, "i"), 4, Target.UPCAST)), Ok)
    check_independence(k.ast(), {"x": np.arange(4.0), "y": np.zeros((4, 4))})
