"""PadTo: sizes, guards, masks, and that results stay."""

import numpy as np
import pytest
from kernel_zoo import (
    chol,
    gram,
    jac,
    nested_sums,
    position,
    scale,
    svd,
    symbolic,
    syrk,
)

from batchlas._kernels.build import KernelBuilder
from batchlas._kernels.interpret import run
from batchlas._kernels.ir import Binary, Load, Reduce, ReduceOp, Select, Store
from batchlas._kernels.kinds import DType
from batchlas._kernels.options import Ok, PadTo, Refused, Split, Target
from batchlas._kernels.pad import identity
from batchlas._kernels.schedule import Scheduler
from batchlas._kernels.target import CUDA
from batchlas._kernels.walk import post_order, reductions

UP = Target.UPCAST


def fresh(example):
    k = Scheduler(example.kernel, CUDA)
    k.convert_loop_to_global()
    return k


def same_results(example, k):
    want = example.run()
    for order in ("forward", "reverse"):
        got = example.run(k.get_optimized_ast(), order=order)
        for name, value in want.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("size", "amount", "grown"),
    [(17, 32, 32), (4, 16, None), (5, 16, 16), (6, 1, None), (6, 4, 8), (8, 4, 8)],
)
def test_26_how_far_an_axis_grows(size, amount, grown):
    k = fresh(scale(4, size))
    at = position(k, "i")
    answer = k.apply_opt(PadTo(at, amount))
    if grown is None:
        assert isinstance(answer, Refused)
        assert k.full_shape()[at] == size
    else:
        assert [a.size.value for a in answer.axes] == [grown]
        assert k.full_shape()[at] == grown


def test_26_only_constant_sizes():
    k = fresh(symbolic())
    answer = k.apply_opt(PadTo(position(k, "b"), 32))
    assert isinstance(answer, Refused)
    assert "constant size" in answer.reason


def test_26_not_lanes_and_not_threads():
    for target in (UP, Target.LOCAL):
        k = fresh(scale(6, 6))
        k.apply_opt(Split(0, 3, target))
        at = next(p for p, a in enumerate(k.rngs()) if a.name in {"bu", "bl"})
        assert isinstance(k.apply_opt(PadTo(at, 2)), Refused)


@pytest.mark.parametrize(
    ("name", "pad", "then"), [("j", 3, 3), ("k", 5, 5), ("i", 3, 2), ("b", 4, 4)]
)
def test_27_padded_axes_split(name, pad, then):
    example = gram(3, 4, 6)
    k = fresh(example)
    assert isinstance(k.apply_opt(PadTo(position(k, name), pad)), Ok)
    assert isinstance(k.apply_opt(Split(position(k, name), then, UP)), Ok)
    same_results(example, k)


def test_27_a_padded_maximum_is_masked_by_minus_infinity():
    example = nested_sums(3, 2, 6)
    make = example.make
    example.make = lambda: {**make(), "a": -1.0 - np.abs(make()["a"])}
    for name, pad in (("in", 4), ("out", 5), ("b", 2)):
        k = fresh(example)
        assert isinstance(k.apply_opt(PadTo(position(k, name), pad)), Ok)
        same_results(example, k)


@pytest.mark.parametrize("name", ["j", "i", "b"])
def test_27_padded_cholesky(name):
    example = chol(3, 4)
    k = fresh(example)
    assert isinstance(k.apply_opt(PadTo(position(k, name), 5)), Ok)
    same_results(example, k)


def test_28_a_padded_axis_in_a_bound_leaves_the_inner_sum_alone():
    example = syrk(2, 5, 3)
    k = fresh(example)
    at = position(k, "i")
    assert isinstance(k.apply_opt(PadTo(at, 4)), Ok)
    (reduce,) = reductions(k.ast())
    assert isinstance(reduce.value, Binary)
    assert all(isinstance(n, Load) for n in (reduce.value.a, reduce.value.b))
    assert not any(isinstance(n, Select) for n in post_order(k.ast()))
    same_results(example, k)


def test_28_every_access_that_the_axis_reaches_is_gated():
    k = fresh(syrk(2, 5, 3))
    k.apply_opt(PadTo(position(k, "i"), 4))
    (reduce,) = reductions(k.ast())
    # j runs to i, so the load that only j indexes needs the guard as well
    assert reduce.value.a.gate is not None
    assert reduce.value.b.gate is not None
    stores = [n for n in post_order(k.ast()) if isinstance(n, Store)]
    assert all(store.gate is not None for store in stores)


def test_a_padded_sum_masks_its_own_value():
    k = fresh(gram(2, 2, 6))
    k.apply_opt(PadTo(position(k, "k"), 4))
    (reduce,) = reductions(k.ast())
    assert isinstance(reduce, Reduce)
    assert isinstance(reduce.value, Select)


@pytest.mark.parametrize("example", [jac(3, 3), svd(3, 4, 3)])
def test_a_padded_matrix_leaves_its_repeat_at_once(example):
    k = fresh(example)
    assert isinstance(k.apply_opt(PadTo(position(k, "b"), 4)), Ok)
    same_results(example, k)


def test_identities():
    assert identity(ReduceOp.ADD, DType.FLOAT32).value == 0.0
    assert identity(ReduceOp.MUL, DType.INT64).value == 1
    assert identity(ReduceOp.MAX, DType.FLOAT64).value == float("-inf")
    assert identity(ReduceOp.MAX, DType.INT32).value == -(2**31)


def test_a_staged_axis_is_not_padded():
    w = KernelBuilder()
    x, s = w.array("x", DType.FLOAT64, (8, 6)), w.register("s", DType.FLOAT64, (6,))
    with w.weak(8, "b") as b:
        w.stage(s, lambda i: x[b, i])
        x[b, 0] = s[5]
    k = Scheduler(w.finish(), CUDA)
    assert isinstance(k.apply_opt(PadTo(position(k, "s0"), 4)), Refused)


@pytest.mark.parametrize("space", ["memory", "register"])
def test_a_padded_serial_loop_does_nothing_more(space):
    w = KernelBuilder()
    x, y = w.array("x", DType.FLOAT64, (3,)), w.array("y", DType.FLOAT64, ())
    total = y if space == "memory" else w.register("r", DType.FLOAT64)
    total.set(1.0)
    with w.serial(3, "j") as j:
        total.set(2.0 * total.get() + x[j])
    if space == "register":
        y.set(total.get())
    k = Scheduler(w.finish(), CUDA)
    assert isinstance(k.apply_opt(PadTo(position(k, "j"), 4)), Ok)
    arrays = {"x": np.ones(3), "y": np.zeros(())}
    run(k.ast(), arrays)
    assert arrays["y"] == 15.0


def test_a_padded_step_does_not_repeat_for_ever():
    w = KernelBuilder()
    y = w.array("y", DType.FLOAT64, (3,))
    with w.weak(3, "b") as b, w.repeat() as loop:
        y[b] = y[b] + 1.0
        loop.again_while(y[b] < 5.0)  # a gated load is zero, and zero stays below 5
    k = Scheduler(w.finish(), CUDA)
    assert isinstance(k.apply_opt(PadTo(0, 4)), Ok)
    arrays = {"y": np.arange(3.0)}
    run(k.ast(), arrays)
    np.testing.assert_array_equal(arrays["y"], [5.0, 5.0, 5.0])


def test_a_register_subscript_of_a_padded_step_is_gated():
    w = KernelBuilder()
    x, y = w.array("x", DType.FLOAT64, (3,)), w.array("y", DType.FLOAT64, (3,))
    r = w.register("r", DType.INT64)
    with w.weak(3, "b") as b:
        r.set(b)
        y[b] = x[r.get()]
    k = Scheduler(w.finish(), CUDA)
    assert isinstance(k.apply_opt(PadTo(0, 4)), Ok)
    arrays = {"x": np.arange(3.0), "y": np.zeros(3)}
    run(k.ast(), arrays, order="reverse")
    np.testing.assert_array_equal(arrays["y"], arrays["x"])
